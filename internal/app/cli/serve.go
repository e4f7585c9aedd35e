package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
)

const serveLong = `Serves studies to programs that ask for trials and tell their values, such as the
Python client. etcd, NATS and a coordinator start in one process, and everything is
kept in a state directory: serving it again continues its studies. Workers cannot
connect; they need a coordinator with an etcd and a NATS of its own.

The API and the dashboard are on --listen, by default on a free port of this
machine. Once they answer, one line of JSON on stdout says where:
  {"url":"http://127.0.0.1:40123","state":"/home/me/.fantasia/_server","pid":4711}

Everybody on this machine can call that address; with --tokens, only callers with a
token can. An address that other machines reach needs --tokens or --oidc-issuer, or
--insecure to let everybody in. The state can be served once at a time: if it is already, the exit code is
4, and stderr says where it is served.`

// serveFlags are the flags of serve.
type serveFlags struct {
	standalone.Options
	exitWithParent bool
	verbose        bool
}

// defaultServerState is not the name of a study, so it is free beside the states of
// fantasia run.
const defaultServerState = ".fantasia/_server"

func newServeCommand(a *app) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve studies to clients of the API, such as Python",
		Long:  serveLong,
		Example: `  fantasia serve --listen localhost:8080
  fantasia --server http://localhost:8080 study list`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := directory(cmd, f.State); err != nil {
				return err
			}
			if err := f.API.CheckListen(f.Listen); err != nil {
				return usagef(cmd, "%v", err)
			}
			return a.serve(cmd.Context(), f)
		},
	}
	c.Flags().StringVar(&f.State, "state", defaultServerState, "`directory` that keeps everything")
	c.Flags().StringVar(&f.Listen, "listen", "127.0.0.1:0", "address of the API and the dashboard; port 0 is a free port")
	f.API.Flags(c.Flags())
	c.Flags().BoolVar(&f.exitWithParent, "exit-with-parent", false, "end when standard input is closed, as it is when the process that "+
		"started this one ends")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log more to fantasia.log in the state directory")
	return c
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if f.exitWithParent {
		// A read of standard input cannot be ended, so nobody waits for it: if the server
		// ends first, the program does too.
		go func() {
			defer stop()
			_, _ = io.Copy(io.Discard, a.Stdin) // an error ends it, too
		}()
	}
	f.Version = a.Version
	if f.verbose {
		f.Level = slog.LevelDebug
	}
	var unsaid error
	f.Ready = func(at standalone.Address) {
		line, err := json.Marshal(at)
		if err == nil {
			_, err = fmt.Fprintf(a.Stdout, "%s\n", line)
		}
		if err != nil { // whoever started the server cannot learn where it is
			unsaid = err
			stop()
		}
	}
	err := standalone.Run(ctx, f.Options)
	if errors.Is(err, local.ErrInUse) {
		if at, unknown := standalone.Served(f.State); unknown == nil {
			err = fmt.Errorf("%w; it is served at %s", err, at.URL)
		}
		return exitWith(ExitInUse, err)
	}
	return errors.Join(unsaid, err)
}
