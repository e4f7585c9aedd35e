package embedded

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fantasia-hpo/fantasia/internal/base/durable"
)

// slogCore forwards etcd's log to slog. etcd logs a lot: its information becomes debug
// output, and so do warnings and errors while it starts and closes (closing reports
// harmless errors; a failed start returns its error).
type slogCore struct {
	handler slog.Handler
	serving *atomic.Bool
}

func zapLogger(l *slog.Logger, serving *atomic.Bool, dir string) *zap.Logger {
	return zap.New(&slogCore{handler: l.With("component", "etcd").Handler(), serving: serving},
		// a log on a full disk: lastWords says it
		zap.WithFatalHook(lastWords(dir)), zap.WithPanicHook(lastWords(dir)), zap.ErrorOutput(zapcore.AddSync(io.Discard)))
}

// lastWords says on stderr why etcd ends the process, which it does when it cannot write or does not
// understand its files. The log may be on the same disk. Its value is the data's directory.
type lastWords string

// OnWrite implements zapcore.CheckWriteHook.
func (dir lastWords) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	fmt.Fprintln(os.Stderr, dir.text(e.Message, fields))
	os.Exit(1)
}

func (dir lastWords) text(message string, fields []zapcore.Field) string {
	text := fmt.Sprintf("fantasia: etcd cannot go on in %s: %s", string(dir), message)
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			text += ": " + err.Error()
			if durable.Full(err) {
				text += "\nFree some space on that disk, and run the same command again: it goes on where it was."
			}
		}
	}
	return text
}

// newborn reports whether a message is one that a member with an empty database logs
// until its first commit, and that resolves by itself.
func newborn(message string) bool {
	return message == "Failed to detect schema version" || message == "failed to update storage version"
}

func (c *slogCore) level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.DPanicLevel:
		return slog.LevelError
	case l < zapcore.WarnLevel || !c.serving.Load():
		return slog.LevelDebug
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

func (c *slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), c.level(l))
}

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{handler: c.handler.WithAttrs(attrs(fields)), serving: c.serving}
}

func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := c.level(e.Level)
	if newborn(e.Message) {
		level = slog.LevelDebug
	}
	if !c.handler.Enabled(context.Background(), level) {
		return nil
	}
	r := slog.NewRecord(e.Time, level, e.Message, 0)
	r.AddAttrs(attrs(fields)...)
	return c.handler.Handle(context.Background(), r)
}

func (c *slogCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []slog.Attr {
	enc := zapcore.NewMapObjectEncoder()
	out := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		f.AddTo(enc)
		if v, ok := enc.Fields[f.Key]; ok {
			out = append(out, slog.Any(f.Key, v))
		}
	}
	return out
}
