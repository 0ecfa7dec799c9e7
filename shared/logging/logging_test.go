package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
)

// traced is an error that would print a stack trace with %+v, as those of
// some libraries do.
type traced struct{ error }

func (t traced) Format(s fmt.State, verb rune) {
	text := t.Error()
	if verb == 'v' && s.Flag('+') {
		text += "\nmain.main()\n\t/src/main.go:7"
	}
	_, _ = s.Write([]byte(text))
}

func TestAnErrorIsOneLineOfJSONWithoutAStackTrace(t *testing.T) {
	var out bytes.Buffer
	log, err := newTo(zapcore.AddSync(&out), "info", "json")
	require.NoError(t, err)

	log.WithValues("cause", traced{errors.New("no route")}).Error(traced{errors.New("disk full")}, "write status", "object", "ns/images")

	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	var entry map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &entry))
	assert.Equal(t, "error", entry["level"])
	assert.Equal(t, "write status", entry["msg"])
	assert.Equal(t, "disk full", entry["error"])
	assert.Equal(t, "no route", entry["cause"])
	assert.Equal(t, "ns/images", entry["object"])
	assert.Contains(t, entry, "time")
	assert.NotContains(t, out.String(), "main.go")
}

func TestALevelKeepsWhatIsAsImportant(t *testing.T) {
	for level, want := range map[string][]string{
		"error": {"broken"},
		"info":  {"said", "broken"},
		"debug": {"whispered", "said", "broken"},
	} {
		t.Run(level, func(t *testing.T) {
			var out bytes.Buffer
			log, err := newTo(zapcore.AddSync(&out), level, "text")
			require.NoError(t, err)
			log.V(1).Info("whispered")
			log.Info("said")
			log.Error(errors.New("x"), "broken")

			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			require.Len(t, lines, len(want))
			for i, word := range want {
				assert.Contains(t, lines[i], word)
			}
		})
	}
}

func TestAWordThatIsUnknownIsNamedWithTheChoice(t *testing.T) {
	_, err := New("loud", "json")
	require.EqualError(t, err, `log level "loud" is none of error, info, debug`)
	_, err = New("info", "xml")
	require.EqualError(t, err, `log format "xml" is none of json, text`)
	for _, level := range Levels {
		for _, format := range Formats {
			_, err := New(level, format)
			require.NoError(t, err)
		}
	}
}
