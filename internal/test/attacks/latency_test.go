package attacks

import (
	"bufio"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

var (
	rounds = flag.Int("attacks.rounds", 5, "how many trials the ordinary team takes and tells, quietly and under each attack")
	turns  = flag.Int("attacks.turns", 1, "in how many turns these are taken, quietly and under attack")
	large  = flag.Int("attacks.studies", 8, "how many studies of 100 kB the attacker has")
	only   = flag.String("attacks.only", "", "part of the names of the attacks to play")
	report = flag.String("attacks.report", "", "the file for the latencies as Markdown")
)

// pause is how long the ordinary team's evaluations take.
const pause = 20 * time.Millisecond

// TestOthersGoOn plays each attack beside an ordinary team, which takes and tells trials of its own
// study: each of the team's calls succeeds. With -attacks.report it measures how long they took:
// quietly and under attack in turns, since other programs may load the machine too (make attacks).
func TestOthersGoOn(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens"),
		fmt.Appendf(nil, "team %x write team-\nevil %x write evil-\n", sha256.Sum256([]byte("team")), sha256.Sum256([]byte("evil"))), 0o600))
	c := testcluster.Start(t,
		testcluster.Options{Coordinators: 1, Args: []string{"--tokens", filepath.Join(dir, "tokens"), "--lease-ttl", "6s"}})
	_, address, _ := c.Leader(0)
	team, evil := newCaller(t, address, "team"), newCaller(t, address, "evil")
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		return team.create(ctx, fmt.Sprintf(clientStudy, "team-a", 1_000_000))
	})
	for i := range *large {
		must(t, evil.create(t.Context(), largeStudy(fmt.Sprintf("evil-%d", i))))
	}
	must(t, evil.create(t.Context(), fmt.Sprintf(clientStudy, "evil-wait", 1000)))
	_, err := evil.api.SuggestTrials(t.Context(),
		connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/evil-wait", ClientId: "holder", Count: 1}))
	must(t, err) // it holds the study's only trial, so that others wait
	var table strings.Builder
	fmt.Fprintf(&table, "%d trials of each kind, in %d turns; load average before %s\n\n", *rounds, *turns, load())
	table.WriteString("| attack | its calls a second | GetStudy p50, p99 | ratio | SuggestTrials p50, p99 | ratio |\n| --- | --- | --- | " +
		"--- | --- | --- |\n")
	for i, a := range attacks {
		if !strings.Contains(a.name, *only) {
			continue
		}
		var quiet, under took
		calls := 0.0
		for range *turns {
			quiet.add(ordinary(t, team.api, *rounds / *turns))
			stop := play(t, i, address)
			under.add(ordinary(t, team.api, *rounds / *turns))
			calls += stop() / float64(*turns)
			ordinary(t, team.api, 1) // what the attack leaves behind does not count as quiet
		}
		if calls == 0 {
			t.Errorf("%s: nothing was sent", a.name)
		}
		fmt.Fprintf(&table, "| %s | %.0f |", a.name, calls)
		for call := range under {
			fmt.Fprintf(&table, " %s, %s (quiet %s, %s) | %.1f, %.1f |", at(under[call], 50), at(under[call], 99), at(quiet[call], 50),
				at(quiet[call], 99),
				float64(at(under[call], 50))/float64(at(quiet[call], 50)), float64(at(under[call], 99))/float64(at(quiet[call], 99)))
		}
		table.WriteString("\n")
	}
	fmt.Fprintf(&table, "\nLoad average after: %s\n", load())
	t.Log("\n" + table.String())
	if *report != "" {
		must(t, os.WriteFile(*report, []byte(table.String()), 0o600))
	}
}

// load returns how many processes have waited for a processor in the last minute, as Linux counts them.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// play plays an attack in another process until it is stopped, which returns how many calls a second it
// made. It returns when the attack has begun.
func play(t *testing.T, number int, address string) (stop func() float64) {
	t.Helper()
	// Attackers have machines of their own, and the coordinator's processors are not for their programs.
	cmd := exec.CommandContext(t.Context(), "nice", "-n", "19", os.Args[0], "-test.run=^TestAttacker$", "-test.count=1")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", attackerEnv, number, address))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != begun {
		t.Fatalf("the attacker says %q", lines.Text())
	}
	return func() float64 {
		must(t, in.Close())
		var calls float64
		lines.Scan()
		if _, err := fmt.Sscanf(lines.Text(), "%f calls a second", &calls); err != nil {
			t.Fatalf("the attacker says %q: %v", lines.Text(), err)
		}
		for lines.Scan() { // the end of its test
		}
		must(t, cmd.Wait())
		return calls
	}
}

const (
	attackerEnv = "FANTASIA_TEST_ATTACK" // the attack's number and the address
	begun       = "the attack has begun"
)

// TestAttacker is the process that plays an attack, until its input ends.
func TestAttacker(t *testing.T) {
	var number int
	var address string
	if n, _ := fmt.Sscanf(os.Getenv(attackerEnv), "%d %s", &number, &address); n != 2 {
		t.Skip("TestOthersGoOn starts it")
	}
	a := attacks[number]
	if a.own {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
		defer server.Close()
		address = server.Listener.Addr().String()
	}
	evil := newCaller(t, address, "evil")
	ctx, cancel := context.WithCancel(t.Context())
	var all, first sync.WaitGroup
	var calls atomic.Int64
	start := time.Now()
	for range a.parallel {
		first.Add(1)
		all.Go(func() {
			first.Done()
			for ctx.Err() == nil {
				calls.Add(1)
				if err := a.once(ctx, evil); err != nil && a.parallel > 100 { // refused: these try again now and then
					select {
					case <-time.After(100 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	first.Wait()
	fmt.Println(begun)
	_, err := io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	fmt.Printf("%f calls a second\n", float64(calls.Load())/time.Since(start).Seconds())
	must(t, err)
}

// took is how long GetStudy and SuggestTrials took.
type took [2][]time.Duration

func (d *took) add(more took) {
	for call := range d {
		d[call] = append(d[call], more[call]...)
	}
}

// ordinary takes and tells trials, and returns how long GetStudy and SuggestTrials took.
func ordinary(t *testing.T, team service, rounds int) (d took) {
	t.Helper()
	for range rounds {
		begun := time.Now()
		persist(t, func(ctx context.Context) error {
			_, err := team.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/team-a"}))
			return err
		})
		d[0] = append(d[0], time.Since(begun))
		begun = time.Now()
		var got *connect.Response[fantasiav1.SuggestTrialsResponse]
		persist(t, func(ctx context.Context) (err error) {
			got, err = team.SuggestTrials(ctx,
				connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/team-a", ClientId: "team", Count: 1}))
			return err
		})
		d[1] = append(d[1], time.Since(begun))
		time.Sleep(pause)
		for _, trial := range got.Msg.GetTrials() {
			persist(t, func(ctx context.Context) error {
				_, err := team.CompleteTrial(ctx,
					connect.NewRequest(&fantasiav1.CompleteTrialRequest{Name: trial.GetName(), ClientId: "team", Values: []float64{1}}))
				return err
			})
		}
	}
	return d
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
