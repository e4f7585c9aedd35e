package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/app/backend"
	"github.com/fantasia-hpo/fantasia/internal/app/dashboard"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
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
	hosts, err := httpserve.NewHosts()
	if err != nil {
		return fmt.Errorf("set up the dashboard: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	pages := dashboard.New(b, dashboard.Options{API: api, Draining: ctx.Done(), Logger: n.log})
	n.stack.PushClose("the dashboard", pages.Close)
	mux := http.NewServeMux()
	mux.Handle(dashboard.Path, pages)
	mux.Handle("GET /{$}", http.RedirectHandler(dashboard.Path, http.StatusSeeOther))
	guarded := hosts.Guard(mux, "", func(w http.ResponseWriter, _ *http.Request, status int, err error) {
		http.Error(w, err.Error(), status)
	})
	served := make(chan error, 1)
	go func() { served <- httpserve.Serve(ctx, n.o.UI, guarded, n.log) }()
	n.stack.PushClose("the dashboard's server", func() error {
		stop()
		return <-served
	})
	if n.o.Shown != nil {
		n.o.Shown()
	}
	return nil
}
