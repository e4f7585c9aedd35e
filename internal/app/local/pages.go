package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/backend"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/show/dashboard"
)

// closeUI closes the listener of the dashboard, if there is one.
func (o *Options) closeUI() error {
	if o.UI == nil {
		return nil
	}
	if err := o.UI.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the dashboard's listener: %w", err)
	}
	return nil
}

// pages serves the dashboard of the study until the stack is closed.
func (n *node) pages(c *coordinator.Coordinator) error {
	b := backend.New(c, n.ledger)
	_, api, err := server.New(b, server.Options{Logger: n.log})
	if err != nil {
		return fmt.Errorf("set up the dashboard: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serveDashboard(ctx, n.o.UI, b, api, n.log) }()
	n.stack.PushClose("the dashboard", func() error {
		stop()
		return <-served
	})
	if n.o.Shown != nil {
		n.o.Shown()
	}
	return nil
}

// serveDashboard serves the pages of a backend on a listener until ctx ends, to those who call this
// machine by its name. api is the API of the same backend. It closes the listener.
func serveDashboard(ctx context.Context, l net.Listener, b server.Reader, api http.Handler, log *slog.Logger) error {
	hosts, err := httpserve.NewHosts()
	if err != nil {
		return errors.Join(fmt.Errorf("set up the dashboard: %w", err), l.Close())
	}
	pages := dashboard.New(b, dashboard.Options{API: api, Draining: ctx.Done(), Logger: log}) //nolint:contextcheck // it ends with Close
	mux := http.NewServeMux()
	mux.Handle(dashboard.Path, pages)
	mux.Handle("GET /{$}", http.RedirectHandler(dashboard.Path, http.StatusSeeOther))
	guarded := hosts.Guard(mux, "", func(w http.ResponseWriter, _ *http.Request, status int, err error) {
		http.Error(w, err.Error(), status)
	})
	err = httpserve.Serve(ctx, l, guarded, log)
	return errors.Join(err, pages.Close())
}
