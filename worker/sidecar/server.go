package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// DefaultAddress is the default address of a sidecar.
const DefaultAddress = "127.0.0.1:7070"

const (
	readHeaderTimeout = 10 * time.Second
	bodyTimeout       = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = 2 * time.Second
)

// stopAnswer tells whether the client should stop its trial, and why.
type stopAnswer struct {
	Stop   bool   `json:"stop"`
	Reason string `json:"reason,omitempty"`
	// Ignored lists what was not taken from a report.
	Ignored []string `json:"ignored,omitempty"`
}

// endAnswer tells how an attempt ended, and whether the client asked for that.
type endAnswer struct {
	Taken   bool              `json:"taken"`
	Outcome messaging.Outcome `json:"outcome"`
	Message string            `json:"message,omitempty"`
}

type handBackAnswer struct {
	Open int `json:"open"`
}

type problemAnswer struct {
	Error string `json:"error"`
	Field string `json:"field,omitempty"`
}

// Handler returns the HTTP handler for clients. It refuses requests of web pages, and those
// for hosts that Options.AllowedHosts does not list.
func (s *Sidecar) Handler() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]func(http.ResponseWriter, *http.Request) (any, error){
		"POST /v1/next":       s.serveNext,
		"POST /v1/report":     s.serveReport,
		"GET /v1/should-stop": s.serveShouldStop,
		"POST /v1/complete":   s.serveComplete,
		"POST /v1/hand-back":  func(http.ResponseWriter, *http.Request) (any, error) { return handBackAnswer{s.HandBack()}, nil },
		"GET /healthz":        func(http.ResponseWriter, *http.Request) (any, error) { return map[string]bool{"ok": true}, nil },
	} {
		method, route, _ := strings.Cut(path, " ")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { answer(w)(h(w, r)) })
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", method)
			answer(w)(nil, &problem{http.StatusMethodNotAllowed, "", fmt.Sprintf("%s %s, want %s", r.Method, route, method)})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(nil, &problem{http.StatusNotFound, "", fmt.Sprintf("unknown path %s; want /v1/next, /v1/report, "+
			"/v1/should-stop, /v1/complete, /v1/hand-back or /healthz", cut(r.URL.Path))})
	})
	guarded := s.hosts.Guard(mux, "--allowed-hosts", func(w http.ResponseWriter, _ *http.Request, status int, err error) {
		answer(w)(nil, &problem{status, "", err.Error()})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Browsers cannot reach a Unix socket, and its clients have no name for it.
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
			mux.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// answer returns a function that writes a body or an error. It ignores clients that
// have gone.
func answer(w http.ResponseWriter) func(body any, err error) {
	return func(body any, err error) {
		status := http.StatusOK
		if p, ok := errors.AsType[*problem](err); ok {
			status, body = p.status, problemAnswer{p.Error(), p.field}
		} else if errors.Is(err, errNone) {
			w.WriteHeader(http.StatusNoContent)
			return
		} else if errors.Is(err, errLeaving) {
			status, body = http.StatusGone, problemAnswer{Error: err.Error()}
		} else if err != nil {
			w.Header().Set("Retry-After", "1")
			status, body = http.StatusServiceUnavailable, problemAnswer{Error: err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (s *Sidecar) serveNext(w http.ResponseWriter, r *http.Request) (any, error) {
	f, err := readFields(w, r, "client", "wait")
	if err != nil {
		return nil, err
	}
	name, err := f.text("client", maxID)
	if err != nil {
		return nil, err
	}
	if name == "" && s.options.Slots > 1 {
		return nil, invalid("client", "missing: a worker of %d slots needs a name for each of its clients, the same after a "+
			"restart", s.options.Slots)
	}
	wait, err := f.wait()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	return s.next(ctx, name)
}

// find returns the attempt of an id, or nil. The caller MUST hold the lock.
func (s *Sidecar) find(id string) *attempt {
	if a := s.open[id]; a != nil {
		return a
	}
	return s.past[id]
}

func (s *Sidecar) serveReport(w http.ResponseWriter, r *http.Request) (any, error) {
	f, err := readFields(w, r, "id", "step", "metrics", "checkpoint")
	if err != nil {
		return nil, err
	}
	id, reported, err := f.measured()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.find(id)
	var ignored []string
	if a != nil && a.outcome == "" && !a.isEnded {
		ignored = a.addReport(reported)
	}
	reason := s.tellStop(a)
	return stopAnswer{reason != "", reason, ignored}, nil
}

// tellStop returns why the client of an attempt should stop, and notes that it knows. The
// caller MUST hold the lock.
func (s *Sidecar) tellStop(a *attempt) string {
	reason := s.stopReason(a)
	if a != nil && reason != "" {
		a.told = true
	}
	return reason
}

func (s *Sidecar) serveShouldStop(_ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.URL.Query().Get("id")
	if id == "" || len(id) > maxID {
		return nil, invalid("id", "missing or too long; want ?id= with the id from the answer of next")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.find(id)
	if a != nil {
		a.heard = time.Now()
	}
	reason := s.tellStop(a)
	return stopAnswer{Stop: reason != "", Reason: reason}, nil
}

func (s *Sidecar) serveComplete(w http.ResponseWriter, r *http.Request) (any, error) {
	f, err := readFields(w, r, "id", "step", "metrics", "checkpoint", "failed", "infeasible", "retry")
	if err != nil {
		return nil, err
	}
	id, reported, err := f.completion()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	a := s.find(id)
	if a != nil {
		a.complete(reported)
	}
	s.mu.Unlock()
	if a == nil {
		return endAnswer{Outcome: stopUnknown, Message: "unknown or forgotten trial: its result is ignored"}, nil
	}
	select {
	case <-a.durable:
	case <-time.After(durableTimeout):
		return nil, errors.New("the result is not on disk yet: send the request again")
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return endAnswer{a.end != nil, a.outcome, a.message}, nil
}

// Listen listens on an address, HOST:PORT or unix:PATH. It replaces a socket that an
// earlier process left behind.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	network, where := network(address)
	if network == "unix" {
		if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, where); err == nil {
			return nil, errors.Join(fmt.Errorf("sidecar: %s is already in use", address), conn.Close())
		}
		if err := os.Remove(where); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("sidecar: replace the socket: %w", err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, where)
	if err != nil {
		return nil, fmt.Errorf("sidecar: listen on %s: %w", address, err)
	}
	if network == "unix" {
		// The user and the group may connect: containers share a volume.
		if err := os.Chmod(where, 0o660); err != nil {
			return nil, errors.Join(fmt.Errorf("sidecar: let the group use the socket: %w", err), listener.Close())
		}
	}
	return listener, nil
}

func network(address string) (network, where string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}

// Serve serves clients on the listener until ctx ends, and closes the listener. It
// returns nil after an orderly end.
func (s *Sidecar) Serve(ctx context.Context, listener net.Listener) error {
	if a, ok := listener.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		s.options.Logger.Warn("other machines can take and end trials at this address", "address", a.String())
	}
	server := &http.Server{
		Handler: httpserve.BodyTimeout(s.Handler(), bodyTimeout), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("sidecar: serve: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		s.options.Logger.Warn("requests were cut off", telemetry.LogError, err)
		err = server.Close()
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("sidecar: stop serving: %w", err)
	}
	return nil
}

// HandBack asks the sidecar at an address to hand its trials back.
func HandBack(ctx context.Context, address string) (open int, err error) {
	network, where := network(address)
	host := where
	if network == "unix" {
		host = "sidecar"
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, where)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+"/v1/hand-back", nil)
	if err != nil {
		return 0, fmt.Errorf("sidecar: ask %s to hand back: %w", address, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, fmt.Errorf("sidecar: ask %s to hand back: %w", address, err)
	}
	defer resp.Body.Close()
	var body handBackAnswer
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("sidecar: %s answers %s", address, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return 0, fmt.Errorf("sidecar: read the answer of %s: %w", address, err)
	}
	return body.Open, nil
}
