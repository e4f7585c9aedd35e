// Package chaos plays faults against everything at once: three coordinators, three nats-servers,
// three etcds and eight workers, all of them processes, with proxies between them that can hold,
// slow and cut each connection.
//
// Four studies run at a time: programs that take 30 ms and sometimes fail; programs that report
// measurements; trials that six clients of the API evaluate, of whom some disappear without notice,
// report a result twice, or report one for a trial that they never held; and trials that are
// promoted. When a study has ended, the next of its kind begins. Meanwhile a random fault happens
// every few seconds.
//
// After each fault, the ledger is compared with what the programs logged and what the API answered:
//
//   - Each trial that a program or a client completed is completed in the ledger once, with a value
//     that one of its attempts ended with. No trial is lost, no attempt is run twice, and a study
//     that has ended has exactly as many trials as its budget.
//   - Each promoted trial is the one that the rule chooses at its place in the ledger.
//   - Of three objectives, each trial has all values of one attempt, and the front in the ledger
//     and in the API is the one that the programs' logs give.
//   - The answers to clients about each trial are linearizable: Porcupine finds an order that explains
//     them all, with each operation between its call and its answer.
//   - Each measurement that a client was told is stored is in the curve of its trial.
//   - No caller gets an error that clients do not retry, such as internal.
//
// The next fault may come before every study has continued: studies that workers evaluate also wait
// for the elections of NATS, which take rounds of 5 s after two of three servers were lost.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
)

var (
	minutes = flag.Float64("chaos.minutes", 0, "how long to play faults; 0 plays each kind that tests play once")
	seed    = flag.Uint64("chaos.seed", testseed.Get(), "the seed of the faults and of their order")
	output  = flag.String("chaos.report", "", "the file for the report as Markdown")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// rest is how long nothing happens between two faults.
	rest = 200 * time.Millisecond
	// patience bounds the ends of the studies after the last fault.
	patience = 4 * time.Minute
)

// TestChaos plays faults of all kinds while studies run. After each it waits until
// something is committed again, and holds the ledger against what programs logged and
// clients were answered.
func TestChaos(t *testing.T) {
	f := startFleet(t)
	random := rand.New(rand.NewPCG(*seed, 0))
	r := &round{fleet: f, trials: 120, running: map[string]*generation{}, report: &report{
		seed: *seed, faults: map[string]*times{}, answers: map[string]int{},
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var watching, playing sync.WaitGroup
	defer watching.Wait()
	defer playing.Wait()
	defer r.recovering.Wait()
	defer cancel()
	p := newProgress()
	watching.Go(func() { p.watch(ctx, f, r.names) })
	last := make(chan struct{})
	for _, fam := range families {
		playing.Go(func() { r.play(ctx, fam, last) })
	}
	if _, err := await(ctx, p.every, time.Now()); err != nil {
		t.Fatalf("nothing is committed before the first fault: %v", err)
	}
	until := time.Now().Add(time.Duration(*minutes * float64(time.Minute)))
	play := kinds
	if *minutes > 0 {
		play = slices.Concat(kinds, more)
	}
	for n, order := 0, random.Perm(len(play)); !t.Failed() && (n < len(play) && *minutes == 0 || time.Now().Before(until)); n++ {
		if n > 0 && n%len(play) == 0 {
			order = random.Perm(len(play))
		}
		r.fault(ctx, p, n+1, play[order[n%len(play)]], random)
	}
	r.recovering.Wait()
	close(last)
	over := make(chan struct{})
	go func() { playing.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(patience):
		t.Errorf("the studies have not ended %s after the last fault", patience)
		cancel()
		<-over
	}
	if t.Failed() {
		return
	}
	for _, g := range r.ended { // what has ended never changes
		if err := r.verify(ctx, g, true); err != nil {
			t.Errorf("%s, at the end: %v", g.study, err)
		}
	}
	cancel()
	f.awaitReady()
	f.stop()
	r.publish()
}

// fault plays one fault and checks what must hold after it. In the background it waits
// until every study has gone on, be it during the next fault.
func (r *round) fault(ctx context.Context, p *progress, n int, k kind, random *rand.Rand) {
	r.t.Helper()
	target, end := k.play(r.fleet, random)
	begun := time.Now()
	lasts := k.lasts.least
	if wide := k.lasts.most - k.lasts.least; wide > 0 {
		lasts += time.Duration(random.Int64N(int64(wide)))
	}
	_ = pause(ctx, lasts)
	end()
	text := fmt.Sprintf("fault %d, %s (%s) for %.1f s", n, k.name, target, lasts.Seconds())
	first, err := await(ctx, p.any, begun)
	if err == nil {
		_, err = await(ctx, p.any, time.Now())
	}
	if err != nil {
		r.t.Fatalf("%s: no study goes on within %s: %v", text, soon, err)
	}
	r.report.recovered(k.name, first)
	r.recovering.Go(func() {
		every, err := await(ctx, p.every, begun)
		if err != nil && ctx.Err() == nil {
			r.t.Errorf("%s: a study does not go on within %s: %v", text, soon, err)
		}
		if err == nil {
			r.report.allRecovered(k.name, every)
		}
	})
	r.awaitReady()
	_ = pause(ctx, rest)
	r.mu.Lock()
	running := slices.Collect(maps.Values(r.running))
	r.mu.Unlock()
	for _, g := range running {
		if err := r.verify(ctx, g, false); err != nil {
			r.t.Errorf("%s, after which %s is wrong: %v", text, g.study, err)
		}
	}
	r.t.Logf("%s %s: something was committed after %.2f s", time.Now().Format(time.TimeOnly), text, first.Seconds())
}

// await waits for commits after a time, but not for ever.
func await(ctx context.Context, after func(context.Context, time.Time) (time.Duration, error), since time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	return after(ctx, since)
}

// publish checks and writes the report.
func (r *round) publish() {
	r.t.Helper()
	for _, text := range r.report.wrong {
		r.t.Errorf("an answer that no caller can do anything with: %s", text)
	}
	for _, k := range slices.Sorted(maps.Keys(r.report.answers)) {
		r.t.Logf("%s: %d", k, r.report.answers[k])
	}
	text := r.report.String()
	r.t.Log(text)
	if *output != "" {
		if err := os.WriteFile(*output, fmt.Append(nil, text), 0o644); err != nil {
			r.t.Error(err)
		}
	}
}
