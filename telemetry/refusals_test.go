package telemetry_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Ten thousand refused requests with long paths in three seconds are three short lines, which
// count them all.
func TestRefusalsAreFewShortLines(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1, 0)
	refused := telemetry.NewRefusals(slog.New(slog.NewTextHandler(&log, nil)), "refused", func() time.Time { return now })
	r := httptest.NewRequest(http.MethodGet, "/"+strings.Repeat("x", 20_000), nil)
	for range 3 {
		for range 10_000 {
			refused.Log(r, errors.New("no token"))
		}
		now = now.Add(time.Second)
	}
	lines := strings.SplitAfter(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || log.Len() > 3*500 || !strings.Contains(lines[2], "count=10000") {
		t.Errorf("30,000 refusals made %d lines of %d bytes, the last one %q; want three, and the count", len(lines), log.Len(),
			lines[len(lines)-1])
	}
}
