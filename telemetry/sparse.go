package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// sparseBurst is how many lines of a kind a sparse logger writes at once.
	sparseBurst = 10
	// maxSparseKinds bounds the kinds of lines that a sparse logger tells apart.
	maxSparseKinds = 100
	// maxSparseText bounds a text in a line of a sparse logger, in bytes.
	maxSparseText = 500
)

// Sparse returns a logger for what others can cause as often as they like, such as messages
// that cannot be read, so that nobody can fill a disk with its lines. It writes ten lines of
// each message, and then one a second, which counts those that it has left out. Texts are cut
// after 500 bytes. now is the clock.
func Sparse(logger *slog.Logger, now func() time.Time) *slog.Logger {
	return slog.New(&sparse{logger.Handler(), &sparseKinds{now: now, kinds: map[string]*sparseKind{}}})
}

// sparse is the handler of a sparse logger.
type sparse struct {
	next  slog.Handler
	lines *sparseKinds // shared by all that come from one
}

// sparseKinds are the lines of a sparse logger, by message.
type sparseKinds struct {
	now func() time.Time

	mu    sync.Mutex
	kinds map[string]*sparseKind
}

type sparseKind struct {
	lines  *rate.Limiter
	unsaid int
}

// say counts a line, and returns whether it is to be written, and how many were left out before.
func (k *sparseKinds) say(message string) (left int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind := k.kinds[message]
	if kind == nil && len(k.kinds) >= maxSparseKinds {
		message = ""
		kind = k.kinds[message]
	}
	if kind == nil {
		kind = &sparseKind{lines: rate.NewLimiter(1, sparseBurst)}
		k.kinds[message] = kind
	}
	if !kind.lines.AllowN(k.now(), 1) {
		kind.unsaid++
		return 0, false
	}
	left, kind.unsaid = kind.unsaid, 0
	return left, true
}

// Enabled implements slog.Handler.
func (s *sparse) Enabled(ctx context.Context, level slog.Level) bool {
	return s.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (s *sparse) Handle(ctx context.Context, r slog.Record) error {
	left, ok := s.lines.say(r.Message)
	if !ok {
		return nil
	}
	line := slog.NewRecord(r.Time, r.Level, short(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		line.AddAttrs(shortAttr(a))
		return true
	})
	if left > 0 {
		line.AddAttrs(slog.Int("left_out", left))
	}
	return s.next.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (s *sparse) WithAttrs(attrs []slog.Attr) slog.Handler {
	cut := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		cut[i] = shortAttr(a)
	}
	return &sparse{s.next.WithAttrs(cut), s.lines}
}

// WithGroup implements slog.Handler.
func (s *sparse) WithGroup(name string) slog.Handler { return &sparse{s.next.WithGroup(name), s.lines} }

// shortAttr cuts an attribute's text.
func shortAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, short(v.String()))
	case slog.KindAny:
		return slog.String(a.Key, short(fmt.Sprint(v.Any())))
	default:
		return a
	}
}

// short cuts a text, between characters.
func short(text string) string {
	if len(text) <= maxSparseText {
		return text
	}
	return strings.ToValidUTF8(text[:maxSparseText], "") + "…"
}
