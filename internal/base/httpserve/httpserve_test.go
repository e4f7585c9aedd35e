package httpserve_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
)

func TestMux(t *testing.T) {
	var ready error
	mux := httpserve.Mux(httpserve.Probes{
		Ready:   func(context.Context) error { return ready },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") }),
	})
	for _, get := range []struct {
		path, body string
		ready      error
		status     int
	}{
		{"/healthz", "ok\n", errors.New("etcd does not answer"), 200},
		{"/readyz", "ok\n", nil, 200},
		{"/readyz", "etcd does not answer\n", errors.New("etcd does not answer"), 503},
		{"/metrics", "metrics", nil, 200},
		{"/other", "404 page not found\n", nil, 404},
	} {
		ready = get.ready
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, get.path, nil))
		if w.Code != get.status || w.Body.String() != get.body {
			t.Errorf("%s, ready %v: %d %q; want %d %q", get.path, get.ready, w.Code, w.Body, get.status, get.body)
		}
	}
}
