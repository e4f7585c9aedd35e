package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Whoever causes the same line, or ever other lines, again and again gets few and short ones,
// which count the others; other lines are written as before.
func TestSparseLinesAreFewAndShort(t *testing.T) {
	for name, message := range map[string]func(i int) string{
		"the same message": func(int) string { return "unreadable" },
		"other messages":   func(i int) string { return fmt.Sprint("unreadable ", i) },
	} {
		var log bytes.Buffer
		now := time.Unix(1, 0)
		l := telemetry.Sparse(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
		long := strings.Repeat("é", 100_000)
		for range 3 {
			for i := range 10_000 {
				l.With("from", long).Warn(message(i), "error", errors.New(long))
			}
			now = now.Add(time.Second)
		}
		l.Info("another line", "n", 7)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) > 10*101+2*101+1 || log.Len() > 1300*len(lines) {
			t.Errorf("%s: 30,000 lines became %d of %d bytes", name, len(lines), log.Len())
		}
		if name == "the same message" {
			if len(lines) != 10+2+1 || !strings.Contains(lines[10], " left_out=9990") || !strings.Contains(lines[11], " left_out=9999") {
				t.Errorf("%d lines; want ten at once, two a second later that count the others, and the last one:\n%.300s", len(lines),
					lines[len(lines)-2])
			}
			if last := lines[len(lines)-1]; !strings.HasSuffix(last, `msg="another line" n=7`) {
				t.Errorf("the last line is %q; want another line as it is", last)
			}
		}
	}
}
