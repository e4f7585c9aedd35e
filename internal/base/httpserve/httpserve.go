// Package httpserve serves HTTP for all programs: an API, if there is one, with probes
// and metrics.
package httpserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
)

// The limits of a server.
const (
	readHeaderTimeout = 10 * time.Second
	bodyTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	readyTimeout      = 2 * time.Second
	shutdownTimeout   = 5 * time.Second
)

// Probes are what a server exposes besides an API.
type Probes struct {
	// Ready returns why this replica should get no requests, or nil.
	Ready func(ctx context.Context) error
	// Metrics serves the process's metrics to Prometheus; nil if there are none.
	Metrics http.Handler
}

// Mux serves /healthz (the process responds), /readyz (it can serve) and /metrics. The
// caller may add more.
func Mux(p Probes) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	var checks singleflight.Group // however many ask, there is one check at a time
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		_, err, _ := checks.Do("", func() (any, error) { //nolint:contextcheck // others wait for it, too
			if p.Ready == nil {
				return nil, nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), readyTimeout)
			defer cancel()
			return nil, p.Ready(ctx)
		})
		if err != nil {
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		say(w, http.StatusOK, "ok")
	})
	if p.Metrics != nil {
		mux.Handle("GET /metrics", p.Metrics)
	}
	return mux
}

// say writes a line, and ignores callers that have gone.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n")
}

// Serve serves the listener until ctx ends, over HTTP/1.1 and HTTP/2 (gRPC). It is
// unencrypted unless the listener is one of package tls that offers h2. A request has 10 s
// for its headers (at most 64 KiB) and 30 s for its body. When ctx ends,
// requests have 5 s to finish; handlers of long requests must watch ctx themselves.
// Serve closes the listener, and returns nil after an orderly end. The logger gets a line at
// level debug for each connection that failed, such as one whose TLS handshake did.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           BodyTimeout(handler, bodyTimeout),
		Protocols:         &protocols,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(errorLines{logger}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(stop)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were still running after %v: %w", shutdownTimeout, err), server.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve on %s: %w", listener.Addr(), ended))
	}
	return err
}

// errorLines logs the errors of a server's connections. All have the same message, so that a
// logger can tell them from others.
type errorLines struct{ logger *slog.Logger }

// Write implements io.Writer for package log, which writes a line at a time.
func (l errorLines) Write(line []byte) (int, error) {
	l.logger.Debug("a connection failed", slog.String("why", strings.TrimSpace(string(line))))
	return len(line), nil
}
