package attacks

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

var (
	rounds = flag.Int("attacks.rounds", 5, "how many trials the ordinary team takes and tells, quietly and under each attack")
	report = flag.String("attacks.report", "", "the file for the latencies as Markdown")
)

// pause is how long the ordinary team's evaluations take.
const pause = 20 * time.Millisecond

type service = fantasiav1connect.StudyServiceClient

// attack is what somebody does over and over, in parallel.
type attack struct {
	name     string
	parallel int
	once     func(ctx context.Context, a *attacker) error
}

// attacker has a token for its own studies only.
type attacker struct {
	address string
	http    *http.Client
	api     service // with its token
	calls   atomic.Int64
}

var attacks = []attack{
	{"study files with 20,000 problems", 8, func(ctx context.Context, a *attacker) error { return a.create(ctx, manyProblems()) }},
	{"study files with aliases", 8, func(ctx context.Context, a *attacker) error { return a.create(ctx, aliases()) }},
	{"lists of 40 studies of 100 kB", 8, func(ctx context.Context, a *attacker) error {
		_, err := a.api.ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{PageSize: 1000}))
		return err
	}},
	{"requests without a token", 16, func(ctx context.Context, a *attacker) error {
		return a.get(ctx, "/fantasia.v1.StudyService/"+strings.Repeat("x", 20_000))
	}},
	{"failed logins", 16, func(ctx context.Context, a *attacker) error {
		return a.post(ctx, "/ui/login", url.Values{"token": {"wrong"}, "next": {"/ui/"}})
	}},
	{"600 streams", 600, func(ctx context.Context, a *attacker) error {
		stream, err := a.api.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/evil-0"}))
		if err != nil {
			return err
		}
		for stream.Receive() {
			_ = stream.Msg()
		}
		return errors.Join(stream.Err(), stream.Close())
	}},
	{"600 calls that wait for trials", 600, func(ctx context.Context, a *attacker) error {
		_, err := a.api.SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/evil-wait", ClientId: fmt.Sprintf("other-%d", a.calls.Add(1)), Count: 1}))
		return err
	}},
	{"2,000 silent connections", 2000, func(ctx context.Context, a *attacker) error {
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

func large(name string) string {
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

// TestOthersGoOn plays each attack beside an ordinary team, which takes and tells trials of its own
// study: each of the team's calls succeeds. With -attacks.report it measures how long they took,
// against the quiet time before each attack (make attacks).
func TestOthersGoOn(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(tokens, fmt.Appendf(nil, "team %x write team-\nevil %x write evil-\n", sha256.Sum256([]byte("team")), sha256.Sum256([]byte("evil"))), 0o600))
	c := testcluster.Start(t, testcluster.Options{Coordinators: 1, Args: []string{"--tokens", tokens, "--lease-ttl", "6s"}})
	_, address, _ := c.Leader(0)
	client := func() *http.Client {
		transport := &http.Transport{MaxIdleConnsPerHost: 64}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	team := fantasiav1connect.NewStudyServiceClient(client(), "http://"+address, token("team"))
	evil := &attacker{address: address, http: client()}
	evil.api = fantasiav1connect.NewStudyServiceClient(evil.http, "http://"+address, token("evil"))
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := team.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: fmt.Sprintf(clientStudy, "team-a", 1_000_000)}))
		return err
	})
	for i := range 40 {
		must(t, evil.create(t.Context(), large(fmt.Sprintf("evil-%d", i))))
	}
	must(t, evil.create(t.Context(), fmt.Sprintf(clientStudy, "evil-wait", 1000)))
	_, err := evil.api.SuggestTrials(t.Context(), connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/evil-wait", ClientId: "holder", Count: 1}))
	must(t, err) // it holds the study's only trial, so that others wait
	var table strings.Builder
	table.WriteString("| attack | GetStudy p50, p99 | ratio | SuggestTrials p50, p99 | ratio |\n| --- | --- | --- | --- | --- |\n")
	for _, a := range attacks {
		quiet := ordinary(t, team)
		stop := play(t, evil, a)
		under := ordinary(t, team)
		stop()
		after := ordinary(t, team)
		fmt.Fprintf(&table, "| %s |", a.name)
		for call := range under {
			calm := slices.Concat(quiet[call], after[call])
			fmt.Fprintf(&table, " %s, %s (quiet %s, %s) | %.1f, %.1f |", at(under[call], 50), at(under[call], 99), at(calm, 50), at(calm, 99),
				float64(at(under[call], 50))/float64(at(calm, 50)), float64(at(under[call], 99))/float64(at(calm, 99)))
		}
		table.WriteString("\n")
	}
	t.Log("\n" + table.String())
	if *report != "" {
		must(t, os.WriteFile(*report, []byte(table.String()), 0o600))
	}
}

// play plays an attack until it is stopped.
func play(t *testing.T, evil *attacker, a attack) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range a.parallel {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := a.once(ctx, evil); err != nil && a.parallel > 100 { // refused: these try again now and then
					select {
					case <-time.After(100 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// ordinary takes and tells trials, and returns how long GetStudy and SuggestTrials took.
func ordinary(t *testing.T, team service) (took [2][]time.Duration) {
	t.Helper()
	for range *rounds {
		begun := time.Now()
		persist(t, func(ctx context.Context) error {
			_, err := team.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/team-a"}))
			return err
		})
		took[0] = append(took[0], time.Since(begun))
		begun = time.Now()
		var got *connect.Response[fantasiav1.SuggestTrialsResponse]
		persist(t, func(ctx context.Context) (err error) {
			got, err = team.SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/team-a", ClientId: "team", Count: 1}))
			return err
		})
		took[1] = append(took[1], time.Since(begun))
		time.Sleep(pause)
		for _, trial := range got.Msg.GetTrials() {
			persist(t, func(ctx context.Context) error {
				_, err := team.CompleteTrial(ctx, connect.NewRequest(&fantasiav1.CompleteTrialRequest{Name: trial.GetName(), ClientId: "team", Values: []float64{1}}))
				return err
			})
		}
	}
	return took
}

// persist repeats a call that is refused for want of a leader, as clients do.
func persist(t *testing.T, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := call(ctx)
		if connect.CodeOf(err) != connect.CodeUnavailable || ctx.Err() != nil {
			must(t, err)
			return
		}
		time.Sleep(pause)
	}
}

// at is a percentile.
func at(d []time.Duration, percent int) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, len(d)*percent/100)].Round(10 * time.Microsecond)
}
