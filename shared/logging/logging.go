// Package logging makes the one logger that both binaries use: zap behind
// logr, one line an entry, on standard error. An error is logged as its text
// alone: a stack trace tells an operator nothing, and the wrapped deeds in the
// text tell where it came from.
package logging

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Levels and Formats are the words New understands.
var (
	Levels  = []string{"error", "info", "debug"}
	Formats = []string{"json", "text"}
)

var zapLevels = map[string]zapcore.Level{
	"error": zapcore.ErrorLevel,
	"info":  zapcore.InfoLevel,
	"debug": zapcore.DebugLevel,
}

// New makes a logger that writes to standard error. At level info it keeps
// errors and V(0); at debug V(1) too.
func New(level, format string) (logr.Logger, error) {
	return newTo(zapcore.Lock(os.Stderr), level, format)
}

func newTo(out zapcore.WriteSyncer, level, format string) (logr.Logger, error) {
	lowest, ok := zapLevels[level]
	if !ok {
		return logr.Discard(), fmt.Errorf("log level %q is none of %s", level, strings.Join(Levels, ", "))
	}
	encode, err := encoder(format)
	if err != nil {
		return logr.Discard(), err
	}
	core := plainErrors{zapcore.NewCore(encode, out, lowest)}
	return zapr.NewLogger(zap.New(core)), nil
}

func encoder(format string) (zapcore.Encoder, error) {
	shape := zap.NewProductionEncoderConfig()
	shape.TimeKey = "time"
	shape.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	shape.EncodeDuration = zapcore.StringDurationEncoder
	switch format {
	case "json":
		return zapcore.NewJSONEncoder(shape), nil
	case "text":
		shape.EncodeTime = zapcore.ISO8601TimeEncoder
		shape.EncodeLevel = zapcore.CapitalLevelEncoder
		return zapcore.NewConsoleEncoder(shape), nil
	}
	return nil, fmt.Errorf("log format %q is none of %s", format, strings.Join(Formats, ", "))
}

// plainErrors writes errors as text. Left alone, zap adds a second field with
// the stack trace that some libraries carry in theirs.
type plainErrors struct{ zapcore.Core }

func (p plainErrors) With(fields []zapcore.Field) zapcore.Core {
	return plainErrors{p.Core.With(plain(fields))}
}

// Check must add this core and not the one inside, or Write would be passed
// by.
func (p plainErrors) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if p.Enabled(entry.Level) {
		return checked.AddCore(entry, p)
	}
	return checked
}

func (p plainErrors) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return p.Core.Write(entry, plain(fields))
}

func plain(fields []zapcore.Field) []zapcore.Field {
	out := make([]zapcore.Field, len(fields))
	for i, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			field = zap.String(field.Key, err.Error())
		}
		out[i] = field
	}
	return out
}
