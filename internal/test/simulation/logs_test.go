package simulation

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// logbook collects the logs of all processes.
type logbook struct {
	begun time.Time

	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// note logs something about the world.
func (l *logbook) note(text string) { fmt.Fprintf(l, "%v ==> %s\n", time.Since(l.begun), text) }

// process is the log of a process: once it was killed, it says nothing.
type process struct {
	l    *logbook
	dead atomic.Bool
}

// Write implements io.Writer.
func (p *process) Write(text []byte) (int, error) {
	if p.dead.Load() {
		return len(text), nil
	}
	return p.l.Write(text)
}

// logger is the logger of the process.
func (p *process) logger(name string) *slog.Logger {
	level := slog.LevelInfo
	if one() {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.String(slog.TimeKey, a.Value.Time().Sub(p.l.begun).String())
		}
		return a
	}})).With("of", name)
}
