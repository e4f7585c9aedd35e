package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/app/kubeforward"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/base/httpfault"
	"github.com/fantasia-hpo/fantasia/internal/base/usage"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

// service is a client of the API. Its methods are what ask and fetch.Send call.
type service = fetch.Service

// remote is the server that a command talks to.
type remote struct {
	server string
	// state is the state directory of a local study in place of a server's; "" for none.
	state string
	// damaged makes client read what is left of a damaged state, and lost then says what is missing.
	damaged bool
	lost    []string
	// idle means that no process has that directory open; it is set by client.
	idle    bool
	timeout time.Duration
	caller  access.Caller
	// cluster is where the studies are resources; nil for other servers.
	cluster *kubeforward.Cluster
}

// flags adds the flags that locate the server to a command and its subcommands.
func (r *remote) flags(c *cobra.Command) {
	c.PersistentFlags().StringVar(&r.server, "server", "http://localhost:8080", "`URL` of a coordinator")
	r.caller.Flags(c.PersistentFlags())
	c.PersistentFlags().DurationVar(&r.timeout, "timeout", 30*time.Second, "how long to wait for an answer; watches wait without limit")
}

// call calls the server with a client, within the timeout.
func (r *remote) call(cmd *cobra.Command, f func(context.Context, service) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
	defer cancel()
	client, done, err := r.client(cmd)
	if err != nil {
		return err
	}
	defer done()
	return r.explain(f(ctx, client))
}

// within bounds calls of package fetch as call does.
func (r *remote) within(cmd *cobra.Command) fetch.Within {
	return func(f func(context.Context, service) error) error { return r.call(cmd, f) }
}

// ask makes one call of the server, such as service.GetStudy, within the timeout. It returns
// nil with an error.
func ask[Q, A any](cmd *cobra.Command, r *remote, call func(service, context.Context, *connect.Request[Q]) (*connect.Response[A], error),
	q *Q) (answer *A, err error) {
	err = r.call(cmd, func(ctx context.Context, c service) error {
		answer, err = fetch.Send(ctx, c, call, q)
		return err
	})
	return answer, err
}

// client returns a client of the server; done closes its connections.
func (r *remote) client(cmd *cobra.Command) (client service, done func(), err error) {
	if r.state != "" {
		return r.local(cmd)
	}
	transport, base, err := r.reach(cmd)
	if err != nil {
		return nil, nil, err
	}
	waiting := func(said string) {
		if said == "" {
			said = "waiting for a leader…"
		} else {
			said = "waiting: " + said
		}
		fmt.Fprintln(cmd.ErrOrStderr(), said)
	}
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport}, base,
		connect.WithInterceptors(retry(waiting), bearer(r.caller.Bearer))), transport.CloseIdleConnections, nil
}

// reach checks the flags that locate a server. It returns the server's address without a trailing
// slash, and a transport for it.
func (r *remote) reach(cmd *cobra.Command) (transport *http.Transport, base string, err error) {
	server := r.server
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	target, err := url.Parse(server)
	if err != nil || target.Host == "" || (target.Scheme != "http" && target.Scheme != "https") {
		return nil, "", usagef(cmd, "--server is %q; want a URL such as http://localhost:8080", access.Shown(r.server))
	}
	usual, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		usual = &http.Transport{}
	}
	transport = usual.Clone()
	if transport.TLSClientConfig, err = r.caller.TLS(); err != nil {
		return nil, "", usagef(cmd, "%v", err)
	}
	if err := r.caller.Check(); err != nil {
		return nil, "", usagef(cmd, "%v", err)
	}
	return transport, strings.TrimSuffix(server, "/"), nil
}

// explain adds the server's address to an error if nothing answered there.
func (r *remote) explain(err error) error {
	if r.state != "" { // no server is involved
		return err
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable:
		if connect.IsWireError(err) {
			return err // the server's own words
		}
		if lasting := httpfault.Lasting(err); lasting != nil {
			return fmt.Errorf("%s: %w", access.Shown(r.server), lasting)
		}
		return fmt.Errorf("%s: %w (is a coordinator running there? set another with --server or FANTASIA_SERVER; for studies of fantasia run, "+
			"give --state .fantasia)", access.Shown(r.server), err)
	case connect.CodeInternal: // a server with TLS answers a request without it so
		if !connect.IsWireError(err) && strings.HasPrefix(r.server, "http://") && strings.Contains(err.Error(), "400 Bad Request") {
			return fmt.Errorf("%s: %w (want https:// if the server has TLS)", access.Shown(r.server), err)
		}
		return err
	case connect.CodeUnauthenticated:
		return fmt.Errorf("%w (set a token with FANTASIA_TOKEN, or --token-file)", err)
	case connect.CodeDeadlineExceeded:
		return fmt.Errorf("%s did not answer within %v: %w", access.Shown(r.server), r.timeout, err)
	default:
		return err
	}
}

// bearer adds a token to each request unless it is empty.
type bearer func() string

var _ connect.Interceptor = bearer(nil)

// WrapUnary implements connect.Interceptor.
func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		b.show(req.Header())
		return next(ctx, req)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		b.show(conn.RequestHeader())
		return conn
	}
}

// WrapStreamingHandler implements connect.Interceptor; a client handles nothing.
func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func (b bearer) show(h http.Header) {
	if token := b(); token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
}

// inFile prefixes a server's problems with a study file by the file's name, one a line,
// as a local check prints them.
func inFile(name string, err error) error {
	connected, ok := errors.AsType[*connect.Error](err)
	if !ok || connected.Code() != connect.CodeInvalidArgument {
		return err
	}
	problems := fetch.Violations(connected)
	if len(problems) == 0 {
		return err
	}
	return &fileError{text: each.Join(problems, "\n", func(problem string) string { return placeProblem(name, problem) }), cause: err}
}

// fileError holds the problems of a study file that a server found.
type fileError struct {
	text  string
	cause error
}

// Error returns one line a problem.
func (e *fileError) Error() string { return e.text }

// Unwrap returns the server's error.
func (e *fileError) Unwrap() error { return e.cause }

// placeProblem prefixes a problem, "8:5: spec…" or "spec…", by a file's name.
func placeProblem(file, problem string) string {
	if problem != "" && problem[0] >= '0' && problem[0] <= '9' {
		return file + ":" + problem
	}
	return file + ": " + problem
}

// studyName returns the resource name of a study given by its name or id. The study of
// a Kubernetes resource has its namespace before a dot.
func studyName(cmd *cobra.Command, nameOrID string) (string, error) {
	parts := strings.Split(nameOrID, ".")
	if len(parts) > 2 || slices.ContainsFunc(parts, notLabel) {
		return "", usagef(cmd, "study is %q; want a name (letters, digits and dashes), an id, or NAMESPACE.NAME of a Kubernetes resource",
			nameOrID)
	}
	return "studies/" + nameOrID, nil
}

// notLabel reports whether a text is neither a DNS label nor a study's id.
func notLabel(s string) bool {
	return s == "" || len(s) > 63 || strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") ||
		strings.ContainsFunc(s, func(c rune) bool {
			return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		})
}

// completeStudy completes the first argument with the server's studies.
func (r *remote) completeStudy(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// Completion does not run the command, so its flags have not been set yet.
	if err := usage.Environment(cmd); err != nil {
		return nil, cobra.ShellCompDirectiveError | cobra.ShellCompDirectiveNoFileComp
	}
	quick := &remote{server: r.server, timeout: 2 * time.Second, caller: r.caller}
	page, err := ask(cmd, quick, service.ListStudies, &fantasiav1.ListStudiesRequest{PageSize: 1000})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError | cobra.ShellCompDirectiveNoFileComp
	}
	return each.Of(page.GetStudies(), func(s *fantasiav1.Study) string {
		return strings.TrimPrefix(s.GetName(), "studies/") + "\t" + view.EnumName(s.GetState())
	}), cobra.ShellCompDirectiveNoFileComp
}

// get fetches a study by its name or id.
func (r *remote) get(cmd *cobra.Command, nameOrID string) (*fantasiav1.Study, error) {
	name, err := studyName(cmd, nameOrID)
	if err != nil {
		return nil, err
	}
	resp, err := ask(cmd, r, service.GetStudy, &fantasiav1.GetStudyRequest{Name: name})
	return resp.GetStudy(), err
}

// front fetches the front of a study with several objectives; nil if it has one.
func (r *remote) front(cmd *cobra.Command, s *fantasiav1.Study) ([]view.Optimal, error) {
	if len(s.GetObjectives()) == 0 {
		return nil, nil
	}
	var front []view.Optimal
	err := r.call(cmd, func(ctx context.Context, c service) (err error) {
		front, err = fetch.Front(ctx, c, s)
		return err
	})
	return front, err
}
