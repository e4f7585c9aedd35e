package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
	"github.com/fantasia-hpo/fantasia/internal/assistant"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

const mcpLong = `Serves the Model Context Protocol, by which assistants and other programs use tools.
Its tools check and create studies, ask for trials, report and tell results, show
studies and trials, say which point is best and why, diagnose a study and draw
pictures of it. Reports and tables of trials are resources.

Without --listen it serves the program that started it, over standard input and
output: this is what a client's configuration names. With --listen it serves
streamable HTTP at /mcp of that address.

The studies are those of this machine, below --state: of fantasia run, which can only
be read, and of a server that this program starts, in _server of that directory. With
--server they are those of a coordinator, and --token is sent to it. Over HTTP callers
send their own token, in the header Authorization: Bearer TOKEN. On an address that
others reach, the API has to require one: give --tokens or --oidc-issuer, or --server
with the address of a coordinator that does, or --insecure to let everybody in.`

// mcpFlags are the flags of mcp.
type mcpFlags struct {
	remote
	dir    string
	listen string
	hold   time.Duration
	api    coordinatornode.APIAccess
}

func newMCPCommand(a *app) *cobra.Command {
	var f mcpFlags
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Let assistants work with studies, by the Model Context Protocol",
		Long:  mcpLong,
		Example: `  claude mcp add fantasia -- fantasia mcp
  fantasia mcp --server https://fantasia.example.com
  fantasia mcp --listen localhost:8090`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.mcp(cmd, &f) },
	}
	f.flags(c)
	f.server, c.PersistentFlags().Lookup("server").DefValue = "", ""
	c.PersistentFlags().Lookup("server").Usage = "`URL` of a coordinator (default: the studies below --state)"
	c.Flags().StringVar(&f.dir, "state", ".fantasia", "`directory` with the states of fantasia run; the studies that this program serves "+
		"are in _server there")
	c.Flags().StringVar(&f.listen, "listen", "", "`address` for streamable HTTP, such as localhost:8090 (default: standard input and output)")
	c.Flags().DurationVar(&f.hold, "hold", 12*time.Hour, "how long a trial that was asked for is kept while nothing is said about it")
	f.api.Flags(c.Flags())
	return c
}

func (a *app) mcp(cmd *cobra.Command, f *mcpFlags) (err error) {
	if err := f.check(cmd); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	place, done, err := f.place(cmd, a.Version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	s := assistant.New(assistant.Options{Place: place, Version: a.Version, Timeout: f.timeout, Hold: f.hold, Logger: log})
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), closePatience)
		defer cancel()
		s.Close(ctx)
	}()
	if f.listen == "" {
		return s.Stdio(cmd.Context(), a.Stdin, a.Stdout)
	}
	return a.mcpHTTP(cmd.Context(), f, s, log)
}

// closePatience bounds handing trials back at the end.
const closePatience = 5 * time.Second

// check refuses flags that do not go together.
func (f *mcpFlags) check(cmd *cobra.Command) error {
	switch {
	case f.server != "" && cmd.Flags().Changed("state"):
		return usagef(cmd, "--server and --state: set only one")
	case f.server != "" && !f.api.Open():
		return usagef(cmd, "--tokens and --oidc-issuer are for the studies below --state; the coordinator of --server has its own")
	case f.listen != "" && (f.caller.Token != "" || f.caller.TokenFile != ""):
		return usagef(cmd, "--token and --token-file would be used for every caller of --listen; leave them out: callers send their own token")
	case f.hold <= 0:
		return usagef(cmd, "--hold is %v; want more than 0", f.hold)
	}
	f.api.TLS.Flag = "tls"
	if err := f.api.TLS.Check(); err != nil {
		return usagef(cmd, "%v", err)
	}
	return directory(cmd, f.dir)
}

// place returns where the studies are; done ends what was started for it.
func (f *mcpFlags) place(cmd *cobra.Command, version string) (p assistant.Place, done func() error, err error) {
	if f.server != "" {
		transport, base, err := f.remote.reach(cmd)
		if err != nil {
			return nil, nil, err
		}
		return assistant.Remote{Client: f.dial(transport, base)}, func() error { transport.CloseIdleConnections(); return nil }, nil
	}
	served := standalone.Options{State: filepath.Join(f.dir, filepath.Base(defaultServerState)), Listen: "127.0.0.1:0", API: f.api,
		Version: version}
	served.API.TLS = access.Files{} // that is for callers of --listen; this server is called from here only
	if states, err := local.States(f.dir); err == nil && states[0] == f.dir {
		if standalone.Is(f.dir) {
			served.State = f.dir
		} else {
			return nil, nil, usagef(cmd, "--state is %q, the state of a single study; want the directory above it, such as %s", f.dir,
				filepath.Dir(f.dir))
		}
	}
	l := &assistant.Local{Dir: f.dir, Served: served, Hidden: !f.api.Open(), Dial: f.dial}
	return l, l.Close, nil
}

// dial makes a client that sends the token of the caller or, over standard input, that of
// --token.
func (f *mcpFlags) dial(transport http.RoundTripper, url string) fetch.Service {
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport}, url,
		connect.WithInterceptors(retry(func(string) {}), assistant.Bearing(f.caller.Bearer)))
}

// mcpHTTP serves streamable HTTP until ctx ends.
func (a *app) mcpHTTP(ctx context.Context, f *mcpFlags, s *assistant.Server, log *slog.Logger) error {
	open, err := s.Open(ctx)
	if err != nil {
		return f.explain(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	address := listener.Addr().String()
	if at, ok := listener.Addr().(*net.TCPAddr); ok && open {
		if err := f.api.CheckAddress(f.listen, at.IP); err != nil {
			return errors.Join(exitWith(ExitUsage, err), listener.Close())
		}
	}
	handler, err := f.api.Guard(s.Handler(!open), log, address, f.listen)
	if err != nil {
		return errors.Join(exitWith(ExitUsage, err), listener.Close())
	}
	scheme := "http"
	if f.api.Secure() {
		scheme = "https"
	}
	fmt.Fprintf(a.Stderr, "serving the Model Context Protocol at %s://%s%s\n", scheme, address, assistant.Path)
	return httpserve.Serve(ctx, f.api.Listener(httpserve.Bound(listener, httpserve.Connections{}, server.Network, log)), handler, log)
}
