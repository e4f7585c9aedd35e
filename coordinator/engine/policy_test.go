package engine

import (
	"container/heap"
	"fmt"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// pool runs a study on slots that are never lost, with given durations of evaluations and
// requests, to measure what demand.go promises.
type pool struct {
	r        *rig
	agenda   agenda
	seq      int
	evaluate time.Duration
	ask      time.Duration
	free     int
	queue    []*messaging.Assignment
	busy     time.Duration // over all slots
	sources  map[optimizer.Source]int
	stale    int
	x        float64
}

// played runs a study of n trials on slots and returns what it measured, and
// for how long it ran.
func played(t *testing.T, n, slots int, evaluate, ask time.Duration, change ...func(*study.Algorithm, *Settings)) (*pool, time.Duration) {
	t.Helper()
	p := &pool{evaluate: evaluate, ask: ask, free: slots, sources: map[optimizer.Source]int{}}
	spec, set := newSpec(0, n, slots), Settings{Fallback: true}
	for _, f := range change {
		f(&spec.Definition.Spec.Algorithm, &set)
	}
	p.r = newRig(t, spec, set)
	p.took(p.r.out)
	p.step(Capacity{At: epoch, Slots: slots, Free: slots})
	for p.r.e.running() && len(p.agenda) > 0 {
		next := heap.Pop(&p.agenda).(plan)
		p.r.now = next.at
		next.act()
	}
	if s := p.r.e.Status(); s.Counts.Completed != n {
		t.Fatalf("the study is %s", describeStatus(s))
	}
	for i := range n {
		trial, _ := p.r.e.Trial(i + 1)
		p.sources[trial.Source]++
		p.stale += trial.Staleness
	}
	return p, p.r.now.Sub(epoch)
}

func (p *pool) step(ev Event) { p.took(p.r.step(ev)) }

func (p *pool) after(d time.Duration, act func()) {
	p.seq++
	heap.Push(&p.agenda, plan{p.r.now.Add(d), p.seq, act})
}

// took carries out an Output's effects: the optimiser works and slots evaluate.
func (p *pool) took(out Output) {
	if ask := out.Ask; ask != nil {
		p.after(p.ask, func() {
			list := make([]optimizer.Suggestion, ask.N)
			for i := range list {
				p.x += 1.0 / (1 << 20)
				list[i] = optimizer.Suggestion{Point: study.Point{"x": p.x}, Source: optimizer.SourceModel}
			}
			p.step(Suggested{At: p.r.now, Ask: ask, Suggestions: list})
		})
	}
	if out.Wake.After(p.r.now) {
		p.seq++
		heap.Push(&p.agenda, plan{out.Wake, p.seq, func() { p.step(Tick{At: p.r.now}) }})
	}
	p.queue = append(p.queue, out.Publish...)
	for p.free > 0 && len(p.queue) > 0 {
		a := p.queue[0]
		p.queue = p.queue[1:]
		p.free--
		p.after(0, func() {
			p.step(Claimed{At: p.r.now, Claim: &messaging.Claim{AttemptID: a.AttemptID, Worker: "w", At: p.r.now}})
		})
		p.after(p.evaluate, func() {
			p.free++
			p.busy += p.evaluate
			value := 1.0
			p.step(Finished{At: p.r.now, Result: &messaging.Result{
				AttemptID: a.AttemptID, Worker: "w", Outcome: messaging.OutcomeCompleted, Values: []float64{value},
				Started: p.r.now.Add(-p.evaluate), Ended: p.r.now,
			}})
		})
	}
}

// TestSlotsStayBusy: whatever the durations, slots evaluate rather than wait.
// The least utilisation is that of a slot which waits for its patience before
// each evaluation (a twentieth, and at least 5 ms where it takes a fallback),
// less the start, when nothing is known.
func TestSlotsStayBusy(t *testing.T) {
	tests := []struct {
		evaluate, ask time.Duration
		utilisation   float64
		model         float64 // least share of points from the model
		stale         float64 // most observations, on average, that a point did not know
	}{
		{2 * time.Second, 30 * time.Millisecond, 0.95, 1, 0.05},
		{2 * time.Second, 300 * time.Millisecond, 0.9, 0.95, 8},
		{100 * time.Millisecond, 30 * time.Millisecond, 0.8, 0.9, 8},
		{20 * time.Millisecond, 50 * time.Millisecond, 0.7, 0.9, 32},
		{time.Millisecond, 100 * time.Microsecond, 0.7, 1, 16},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v evaluation, %v request", test.evaluate, test.ask), func(t *testing.T) {
			const n, slots = 400, 8
			p, took := played(t, n, slots, test.evaluate, test.ask)
			utilisation := float64(p.busy) / float64(slots*took)
			model := float64(p.sources[optimizer.SourceModel]) / n
			stale := float64(p.stale) / n
			t.Logf("utilisation %.3f, %v, staleness %.2f", utilisation, p.sources, stale)
			if utilisation < test.utilisation {
				t.Errorf("slots were busy for %.3f of the time, want at least %.2f", utilisation, test.utilisation)
			}
			if model < test.model {
				t.Errorf("%.3f of the points are the model's, want at least %.2f: %v", model, test.model, p.sources)
			}
			if stale > test.stale {
				t.Errorf("a point did not know %.2f observations, want at most %.2f", stale, test.stale)
			}
		})
	}
}

// TestSlotsWaitForPointsThatKnowEverything checks that, with the waits of a study file,
// points come from the model and use every result, even if evaluations take no time.
// Three requests must fit into the wait: the one in flight when a slot becomes free; the
// next one, during which the trials of the first answer end; and one that uses the
// results of those trials too.
func TestSlotsWaitForPointsThatKnowEverything(t *testing.T) {
	waits := func(a *study.Algorithm, _ *Settings) {
		a.Wait, a.FallbackAfter = new(study.DefaultWait), new(study.DefaultFallbackAfter)
	}
	for _, evaluate := range []time.Duration{0, time.Millisecond, 300 * time.Millisecond} {
		for _, ask := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 80 * time.Millisecond} {
			const n, slots = 100, 4
			p, took := played(t, n, slots, evaluate, ask, waits)
			if p.stale != 0 || p.sources[optimizer.SourceModel] != n {
				t.Errorf("%v evaluation, %v request: %d observations were not known, sources %v", evaluate, ask, p.stale, p.sources)
			}
			// Each trial waits for at most three requests, one after the other.
			if most := n * (evaluate + 3*ask); took > most {
				t.Errorf("%v evaluation, %v request: took %v, want at most %v", evaluate, ask, took, most)
			}
		}
	}
}

// TestBlindOptimisersNeverWait checks that no slot waits for suggestions that do not depend
// on results, whatever the study's waits are, since such suggestions are never stale.
func TestBlindOptimisersNeverWait(t *testing.T) {
	const n, slots = 400, 8
	p, took := played(t, n, slots, 2*time.Millisecond, 100*time.Microsecond, func(a *study.Algorithm, s *Settings) {
		a.Wait, a.FallbackAfter, s.Blind = new(study.DefaultWait), new(study.DefaultFallbackAfter), true
	})
	if utilisation := float64(p.busy) / float64(slots*took); utilisation < 0.9 {
		t.Errorf("slots were busy for %.3f of the time, want at least 0.9", utilisation)
	}
	if p.sources[optimizer.SourceModel] != n {
		t.Errorf("sources %v, want the optimiser's alone", p.sources)
	}
}
