package local_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
)

// While a study runs, its pages are served to those who call this machine by its name; when
// it has ended, nobody listens.
func TestPages(t *testing.T) {
	ui, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	get := func(path, host string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ui.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Close = host, true
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(body)
	}
	shown, looked := false, false
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	_, err = local.Run(ctx, local.Options{
		Study: streamOf(t, 100_000, 2), State: stateDir(t), GPUs: "none", UI: ui, Shown: func() { shown = true },
		Progress: func(p coordinator.Progress, _ local.Trials) {
			if p.Status.Counts.Completed < 3 || looked {
				return
			}
			looked = true
			for path, want := range map[string]string{
				"/": "square", "/ui/": "square", "/ui/studies/square": "running", "/ui/studies/square/trials/1": "completed", "/ui/workers": "local",
			} {
				if status, body := get(path, "localhost"); status != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("%s: %d, without %q", path, status, want)
				}
			}
			if status, body := get("/ui/", "evil.example"); status != http.StatusMisdirectedRequest || strings.Contains(body, "square") ||
				!strings.HasSuffix(body, "IP addresses\n") {
				t.Errorf("a request for another host: %d %q", status, body)
			}
			interrupt()
		},
	})
	if !errors.Is(err, local.ErrInterrupted) || !shown || !looked {
		t.Errorf("the run: %v; shown %v, looked %v", err, shown, looked)
	}
	if c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ui.Addr().String()); err == nil {
		t.Error("somebody still listens", c.Close())
	}
	// Also if nothing runs, the listener is closed.
	ui, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := streamOf(t, 3, 1)
	state := stateDir(t)
	run(t, state, other)
	other.Metadata.Name = "other"
	if _, err := local.Run(t.Context(), local.Options{Study: other, State: state, GPUs: "none", UI: ui}); !errors.Is(err,
		local.ErrIncompatible) {
		t.Errorf("another study: %v", err)
	}
	if err := ui.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener of a run that did not start: %v", err)
	}
}
