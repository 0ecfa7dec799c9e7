package upgrade

// Reason is a stable word: the reason of a condition, of an event, and of a
// refusal at admission.
type Reason string

// Reasons of the DatabaseReady condition while work goes on.
const (
	ExpandInProgress     Reason = "ExpandInProgress"
	MigrateInProgress    Reason = "MigrateInProgress"
	UpgradeRollingUpdate Reason = "UpgradeRollingUpdate"
	ContractInProgress   Reason = "ContractInProgress"
	DBSyncInProgress     Reason = "DBSyncInProgress"
)

// DatabaseSynced is the reason of DatabaseReady when the schema is at the
// installed release.
const DatabaseSynced Reason = "DatabaseSynced"

// Reasons of a failure or a refusal; each is also a Warning event.
const (
	VersionParseError     Reason = "VersionParseError"
	DowngradeNotSupported Reason = "DowngradeNotSupported"
	UpgradePathInvalid    Reason = "UpgradePathInvalid"
	UpgradeTargetChanged  Reason = "UpgradeTargetChanged"
	ImageReleaseMismatch  Reason = "ImageReleaseMismatch"
	ExpandFailed          Reason = "ExpandFailed"
	MigrateFailed         Reason = "MigrateFailed"
	ContractFailed        Reason = "ContractFailed"
	DBSyncFailed          Reason = "DBSyncFailed"
)

// Reasons of Normal events, one for each transition.
const (
	UpgradeInitiated          Reason = "UpgradeInitiated"
	ExpandComplete            Reason = "ExpandComplete"
	MigrateComplete           Reason = "MigrateComplete"
	DeploymentRolloutComplete Reason = "DeploymentRolloutComplete"
	UpgradeComplete           Reason = "UpgradeComplete"
	UpgradeAborted            Reason = "UpgradeAborted"
)

// Reasons of a warning about a wish that is accepted. ImageReleaseMismatch is
// one too, where an abort leaves the image behind, and DowngradeNotSupported,
// where it leaves the database ahead of the installed release.
const (
	// ImageReleaseUnknown: the image names no release, so nothing can be
	// compared.
	ImageReleaseUnknown Reason = "ImageReleaseUnknown"
	// MovesBackwards: an older release before anything is installed.
	MovesBackwards Reason = "MovesBackwards"
	// UpgradeStartsOver: another image in the middle of a walk.
	UpgradeStartsOver Reason = "UpgradeStartsOver"
	// AbortWhileContracting: columns may be gone already.
	AbortWhileContracting Reason = "AbortWhileContracting"
)

// The closed sets, for documents and tests.
var (
	ProgressReasons = []Reason{ExpandInProgress, MigrateInProgress, UpgradeRollingUpdate, ContractInProgress, DBSyncInProgress}
	FailureReasons  = []Reason{VersionParseError, DowngradeNotSupported, UpgradePathInvalid, UpgradeTargetChanged, ImageReleaseMismatch,
		ExpandFailed, MigrateFailed, ContractFailed, DBSyncFailed}
	AdviceReasons = []Reason{ImageReleaseUnknown, MovesBackwards, ImageReleaseMismatch, DowngradeNotSupported, UpgradeStartsOver, AbortWhileContracting}
	EventReasons  = []Reason{UpgradeInitiated, ExpandComplete, MigrateComplete, DeploymentRolloutComplete, UpgradeComplete, UpgradeAborted}
)

// words are the reasons that belong to a task.
type words struct {
	running  Reason
	failed   Reason
	complete Reason // the Normal event; empty for Sync, which has none
	title    string
}

var wordsOf = map[Task]words{
	Sync:     {running: DBSyncInProgress, failed: DBSyncFailed, title: "Database sync"},
	Expand:   {running: ExpandInProgress, failed: ExpandFailed, complete: ExpandComplete, title: "Expand phase"},
	Migrate:  {running: MigrateInProgress, failed: MigrateFailed, complete: MigrateComplete, title: "Migrate phase"},
	Contract: {running: ContractInProgress, failed: ContractFailed, complete: UpgradeComplete, title: "Contract phase"},
}

// progressOf is the reason DatabaseReady carries while a phase is walked.
var progressOf = map[Phase]Reason{
	Expanding:     ExpandInProgress,
	Migrating:     MigrateInProgress,
	RollingUpdate: UpgradeRollingUpdate,
	Contracting:   ContractInProgress,
}
