package contract

// Situations that come up more than once.
const (
	empty      = "an empty database"
	steady     = "in steady state, everything repeated"
	onOld      = "on the old release's schema"
	expanded   = "expanded by the new release"
	migrated   = "expanded and migrated"
	contracted = "contracted by the new release"
	noServer   = "nobody listens at the database's address"
	halfDone   = "an expand that was cut between a change and its note: every retry fails"
)

var unreachable = []string{"OS_DATABASE__CONNECTION=mysql+pymysql://x:x@127.0.0.1:1/x", "OS_DATABASE__MAX_RETRIES=1", "OS_DATABASE__RETRY_INTERVAL=1"}

var password = []string{"OS_BOOTSTRAP_PASSWORD=secret"}

// Stories are all of them. Each stands on a database of its own.
var Stories = []Story{
	{
		Name: "glance_upgraded", Service: "glance",
		Trials: []Trial{
			{On: Old, Command: "glance-manage db check", Situation: empty, Exit: 3},
			{On: Old, Command: "glance-manage db migrate", Situation: empty, Exit: 1},
			{On: Old, Command: "glance-manage db contract", Situation: empty, Exit: 1},
			{On: Old, Command: "glance-manage db sync", Situation: empty},
			{On: Old, Command: "glance-manage db check", Situation: steady},
			{On: Old, Command: "glance-manage db sync", Situation: steady},
			{On: New, Command: "glance-manage db check", Situation: onOld, Exit: 3},
			{On: New, Command: "glance-manage db migrate", Situation: onOld, Exit: 1},
			{On: New, Command: "glance-manage db contract", Situation: onOld, Exit: 1},
			{On: New, Command: "glance-manage db expand", Situation: onOld},
			{On: New, Command: "glance-manage db expand", Situation: expanded},
			{On: New, Command: "glance-manage db check", Situation: expanded, Exit: 5},
			{On: Old, Command: "glance-manage db check", Situation: expanded},
			{On: Old, Command: "glance-manage db sync", Situation: expanded},
			{On: Old, Command: API, Situation: expanded},
			{On: New, Command: "glance-manage db migrate", Situation: expanded},
			{On: New, Command: "glance-manage db migrate", Situation: migrated},
			{On: New, Command: "glance-manage db check", Situation: migrated, Exit: 5},
			{On: New, Command: API, Situation: migrated},
			{On: New, Command: "glance-manage db contract", Situation: migrated},
			{On: New, Command: "glance-manage db contract", Situation: contracted},
			{On: New, Command: "glance-manage db expand", Situation: contracted},
			{On: New, Command: "glance-manage db check", Situation: contracted},
			{On: New, Command: "glance-manage db sync", Situation: contracted},
			{On: New, Command: "glance-manage db load_metadefs", Situation: contracted},
			{On: New, Command: "glance-manage db load_metadefs", Situation: "its definitions are loaded already"},
			{On: New, Command: "glance-manage db load_metadefs --path /nowhere", Situation: "the path is missing: it loads nothing and says so in its log alone"},
			{On: Old, Command: "glance-manage db check", Situation: contracted, Exit: 3},
			{On: Old, Command: "glance-manage db sync", Situation: contracted, Exit: 1},
			{On: Old, Command: "glance-manage db expand", Situation: contracted, Exit: 1},
		},
	},
	{
		Name: "glance_cut", Service: "glance",
		Trials: []Trial{
			{On: Old, Command: "glance-manage db sync", Situation: empty},
			{On: New, Command: "glance-manage db expand", Situation: halfDone, Exit: 1, Before: "CREATE TABLE node_reference (node_reference_id bigint PRIMARY KEY)"},
			{On: New, Command: "glance-manage db sync", Situation: noServer, Exit: 1, Env: unreachable},
		},
	},
	{
		Name: "keystone_upgraded", Service: "keystone",
		Trials: []Trial{
			{On: Old, Command: "keystone-manage db_sync --check", Situation: empty, Exit: 2},
			{On: Old, Command: "keystone-manage db_sync --contract", Situation: empty, Exit: 1},
			{On: Old, Command: "keystone-manage db_sync", Situation: empty},
			{On: Old, Command: "keystone-manage bootstrap", Situation: "no password is given", Exit: 1},
			{On: Old, Command: "keystone-manage bootstrap", Situation: "for the first time", Env: password},
			{On: Old, Command: "keystone-manage bootstrap", Situation: "for the second time", Env: password},
			{On: Old, Command: "keystone-manage db_sync", Situation: steady},
			{On: New, Command: "keystone-manage db_sync --check", Situation: onOld + ": it compares the database with itself and proves nothing"},
			{On: New, Command: "keystone-manage db_sync --contract", Situation: onOld, Exit: 1},
			{On: New, Command: "keystone-manage db_sync --migrate", Situation: onOld + ": it does nothing, always"},
			{On: New, Command: "keystone-manage db_sync --expand", Situation: onOld},
			{On: New, Command: "keystone-manage db_sync --expand", Situation: expanded},
			{On: Old, Command: API, Situation: expanded, Env: password},
			{On: Old, Command: "keystone-manage db_sync --check", Situation: expanded, Exit: 1},
			{On: Old, Command: "keystone-manage db_sync", Situation: expanded, Exit: 1},
			{On: Old, Command: "keystone-manage db_sync --expand", Situation: expanded, Exit: 1},
			{On: Old, Command: "keystone-manage db_sync --contract", Situation: expanded, Exit: 1},
			{On: Old, Command: "keystone-manage bootstrap", Situation: expanded, Env: password},
			{On: New, Command: "keystone-manage db_sync --migrate", Situation: expanded},
			{On: New, Command: API, Situation: migrated, Env: password},
			{On: New, Command: "keystone-manage db_sync --contract", Situation: migrated},
			{On: New, Command: "keystone-manage db_sync --contract", Situation: contracted},
			{On: New, Command: "keystone-manage db_sync --expand", Situation: contracted},
			{On: New, Command: "keystone-manage db_sync", Situation: contracted},
			{On: Old, Command: "keystone-manage db_sync", Situation: contracted, Exit: 1},
			{On: Old, Command: API, Situation: contracted, Env: password},
		},
	},
	{
		Name: "keystone_cut", Service: "keystone",
		Trials: []Trial{
			{On: Old, Command: "keystone-manage db_sync", Situation: empty},
			{On: New, Command: "keystone-manage db_sync --expand", Situation: halfDone, Exit: 1,
				Before: "ALTER TABLE mapping ADD COLUMN schema_version varchar(5) NOT NULL DEFAULT '1.0'"},
			{On: New, Command: "keystone-manage db_sync --expand", Situation: "the change is taken back by hand, and the retry goes on where it stood",
				Before: "ALTER TABLE mapping DROP COLUMN schema_version"},
			{On: New, Command: "keystone-manage db_sync", Situation: noServer, Exit: 1, Env: unreachable},
		},
	},
}
