package image

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheMirrorIsTheOneThatServesAWholeSuite(t *testing.T) {
	for name, c := range map[string]struct{ sources, want string }{
		"one line": {"deb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"},
		"options, comments, source packages": {
			"# deb http://old.example/debian bookworm main\ndeb-src http://src.example/debian bookworm main\n" +
				"deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] https://mirror.example/debian trixie main contrib\n",
			"https://mirror.example/debian",
		},
		"security alone is no mirror": {"deb http://mirror.example/debian-security bookworm-security main\n", ""},
		"another vendor is no mirror": {"deb http://packages.example/apt nodistro main\n", ""},
		"fields": {
			"Types: deb\n# http://snapshot.example/debian\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n" +
				"Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\nComponents: main\n",
			"http://mirror.example/debian",
		},
		"fields, security first": {
			"Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\n\nTypes: deb deb-src\nURIs: http://mirror.example/debian\nSuites: sid\n",
			"http://mirror.example/debian",
		},
		"fields, folded":             {"Types: deb\nURIs:\n http://mirror.example/debian\nSuites:\n trixie\n trixie-updates\n", "http://mirror.example/debian"},
		"fields, switched off":       {"Enabled: no\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: trixie\n", ""},
		"fields, sources only":       {"Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\n", ""},
		"a list of mirrors is not":   {"deb mirror+file:/etc/apt/mirrors bookworm main\n", ""},
		"nothing":                    {"", ""},
		"carriage returns, no panic": {"Types: deb\r\nURIs: http://mirror.example/debian\r\nSuites: bookworm\r\n", "http://mirror.example/debian"},
	} {
		assert.Equal(t, c.want, mirrorIn(c.sources), name)
	}
}

func TestOnlySettingsThatMakeTheMirrorUsableArePassedOn(t *testing.T) {
	dump := `Acquire "";
Acquire::cdrom::mount "/media/cdrom/";
Acquire::Check-Valid-Until "false";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::Proxy::mirror.example "DIRECT";
Acquire::Languages "none";
Acquire::Retries "3";
`
	assert.Equal(t, []string{
		`Acquire::Check-Valid-Until "false"`,
		`Acquire::http::Proxy "http://proxy.example:3128"`,
		`Acquire::https::Proxy::mirror.example "DIRECT"`,
		`Acquire::Retries "3"`,
	}, aptSettings(dump))
	assert.Empty(t, aptSettings(""))
}
