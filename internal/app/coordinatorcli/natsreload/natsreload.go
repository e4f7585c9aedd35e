// Package natsreload makes a running nats-server read its configuration again when a
// file of it has changed, so that new users need no restart.
package natsreload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// Options say which server to watch.
type Options struct {
	// Files are parts of the server's configuration.
	Files []string
	// PIDFile is the server's pid_file. The server MUST be in this process's PID
	// namespace, and have the same user.
	PIDFile string
	// Monitor is the address of the server's monitoring port, such as
	// http://localhost:8222.
	Monitor string
	// Every is how often the files are looked at.
	Every time.Duration
	// Log receives what was done, and why it could not be done.
	Log *slog.Logger
}

const (
	// monitorTimeout limits a request to the monitoring port.
	monitorTimeout = 5 * time.Second
	// loading is how long a server may take to load its configuration.
	loading = 2 * time.Second
	// again is when a server that did not take a configuration is asked again.
	again = 30 * time.Second
)

// Run compares the files' times with the time at which the server loaded its
// configuration, and sends the server SIGHUP if a file is newer, until ctx ends. A
// server that starts loads its files anyway, so nothing is lost while either of the two
// is down.
func Run(ctx context.Context, o Options) error {
	w := &watcher{o: o, client: &http.Client{Timeout: monitorTimeout}}
	defer w.client.CloseIdleConnections()
	for range backoff.Every(ctx, o.Every) {
		if err := w.step(ctx, time.Now()); err == nil {
			w.said = ""
		} else if ctx.Err() == nil && err.Error() != w.said {
			w.said = err.Error()
			o.Log.WarnContext(ctx, "cannot check the configuration of NATS", "error", err)
		}
	}
	return nil
}

type watcher struct {
	o      Options
	client *http.Client
	// loaded is when the server is known to have loaded its configuration.
	loaded time.Time
	// asked is when the server was last sent a signal, for files as old as of.
	asked, of time.Time
	said      string // the last error
}

func (w *watcher) step(ctx context.Context, now time.Time) error {
	changed, err := newest(w.o.Files)
	if err != nil || !changed.After(w.loaded) {
		return err
	}
	if w.loaded, err = w.loadTime(ctx); err != nil || !changed.After(w.loaded) {
		return err
	}
	if changed.Equal(w.of) && now.Sub(w.asked) < again {
		if now.Sub(w.asked) < loading {
			return nil
		}
		return errors.New("the server still uses its earlier configuration; its log says why")
	}
	pid, err := readPID(w.o.PIDFile)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("signal process %d of %s: %w", pid, w.o.PIDFile, err)
	}
	w.asked, w.of = now, changed
	w.o.Log.InfoContext(ctx, "asked NATS to read its configuration again", "changed", changed)
	return nil
}

// newest returns the latest time at which one of the files was written.
func newest(files []string) (latest time.Time, err error) {
	for _, name := range files {
		// Kubernetes replaces the file behind a symbolic link.
		info, err := os.Stat(name)
		if err != nil {
			return time.Time{}, err
		}
		if at := info.ModTime(); at.After(latest) {
			latest = at
		}
	}
	return latest, nil
}

// loadTime asks the server when it loaded its configuration.
func (w *watcher) loadTime(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(w.o.Monitor, "/")+"/varz", nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	var server struct {
		Loaded time.Time `json:"config_load_time"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&server); err != nil {
		return time.Time{}, fmt.Errorf("%s: %s: %w", req.URL, resp.Status, err)
	}
	if server.Loaded.IsZero() {
		return time.Time{}, fmt.Errorf("%s: %s: no config_load_time", req.URL, resp.Status)
	}
	return server.Loaded, nil
}

// readPID reads a file with the number of a process that is not the first of its
// namespace.
func readPID(name string) (int, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("%s contains %q, want the number of nats-server's process, above 1", name, text)
	}
	return pid, nil
}
