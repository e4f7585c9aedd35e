package attacks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
)

type service = fantasiav1connect.StudyServiceClient

// attack is what somebody does over and over, in parallel.
type attack struct {
	name     string
	parallel int
	once     func(ctx context.Context, a *attacker) error
	own      bool // calls a server in its own process
}

// attacker has a token for its own studies only, as the ordinary team has.
type attacker struct {
	address string
	http    *http.Client
	api     service // with its token
	calls   atomic.Int64
}

var attacks = []attack{
	// Not an attack: what two processors cost the team that another program shares, whatever it calls.
	{name: "nothing: another server and its client", parallel: 16, own: true, once: func(ctx context.Context, a *attacker) error {
		return a.get(ctx, "/")
	}},
	{name: "study files with 20,000 problems", parallel: 8, once: func(ctx context.Context, a *attacker) error {
		return a.create(ctx, manyProblems())
	}},
	{name: "study files with aliases", parallel: 8, once: func(ctx context.Context, a *attacker) error { return a.create(ctx, aliases()) }},
	{name: "lists of studies of 100 kB", parallel: 8, once: func(ctx context.Context, a *attacker) error {
		_, err := a.api.ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{PageSize: 1000}))
		return err
	}},
	{name: "requests without a token", parallel: 16, once: func(ctx context.Context, a *attacker) error {
		return a.get(ctx, "/fantasia.v1.StudyService/"+strings.Repeat("x", 20_000))
	}},
	{name: "failed logins", parallel: 16, once: func(ctx context.Context, a *attacker) error {
		return a.post(ctx, "/ui/login", url.Values{"token": {"wrong"}, "next": {"/ui/"}})
	}},
	{name: "600 watches of a study of 100 kB", parallel: 600, once: func(ctx context.Context, a *attacker) error {
		stream, err := a.api.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/evil-0"}))
		if err != nil {
			return err
		}
		for stream.Receive() {
			_ = stream.Msg()
		}
		return errors.Join(stream.Err(), stream.Close())
	}},
	{name: "600 calls that wait for trials", parallel: 600, once: func(ctx context.Context, a *attacker) error {
		_, err := a.api.SuggestTrials(ctx,
			connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/evil-wait", ClientId: fmt.Sprintf("other-%d", a.calls.Add(1)),
				Count: 1}))
		return err
	}},
	{name: "600 calls of one client that wait for trials", parallel: 600, once: func(ctx context.Context, a *attacker) error {
		_, err := a.api.SuggestTrials(ctx,
			connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/evil-wait", ClientId: "other", Count: 1}))
		return err
	}},
	{name: "600 calls of a client that holds its trials", parallel: 600, once: func(ctx context.Context, a *attacker) error {
		_, err := a.api.SuggestTrials(ctx,
			connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/evil-wait", ClientId: "holder", Count: 2}))
		return err
	}},
	{name: "2,000 silent connections", parallel: 2000, once: func(ctx context.Context, a *attacker) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.address)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		_, err = io.Copy(io.Discard, c)
		return errors.Join(err, c.Close())
	}},
}

func (a *attacker) create(ctx context.Context, file string) error {
	_, err := a.api.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file}))
	return err
}

func (a *attacker) get(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.address+path, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return a.send(req)
}

func (a *attacker) post(ctx context.Context, path string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.address+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return a.send(req)
}

func (a *attacker) send(req *http.Request) error {
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

const clientStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 1
`

func manyProblems() string {
	var b strings.Builder
	fmt.Fprintf(&b, clientStudy, "evil-problems", 1)
	for i := range 20_000 {
		fmt.Fprintf(&b, "  unknown%d: 1\n", i)
	}
	return b.String()
}

func largeStudy(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, clientStudy+"  initial:\n", name, 4000)
	for i := range 4000 {
		fmt.Fprintf(&b, "    - {x: 0.%012d}\n", i+1)
	}
	return b.String()
}

func aliases() string {
	return "a: &a [" + strings.Repeat("1,", 60_000) + "1]\n" + strings.Repeat("b: *a\n", 10) + fmt.Sprintf(clientStudy, "evil-aliases", 1)
}

// token adds a bearer token to each request.
func token(t string) connect.ClientOption {
	return connect.WithInterceptors(bearer("Bearer " + t))
}

type bearer string

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		r.Header().Set("Authorization", string(b))
		return next(ctx, r)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, s connect.Spec) connect.StreamingClientConn {
		c := next(ctx, s)
		c.RequestHeader().Set("Authorization", string(b))
		return c
	}
}

func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// newCaller has a token and connections of its own.
func newCaller(t *testing.T, address, name string) *attacker {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	a := &attacker{address: address,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	a.api = fantasiav1connect.NewStudyServiceClient(a.http, "http://"+address, token(name))
	return a
}
