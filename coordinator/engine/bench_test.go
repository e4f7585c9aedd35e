package engine

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// longIDs are ids as long as those of a coordinator.
type longIDs struct{ counterIDs }

func (c *longIDs) Nonce() string {
	c.nonces++
	return fmt.Sprintf("%024x", c.nonces)
}

// aged returns an engine of a study of two parameters, with ended trials and eight running
// ones.
func aged(b testing.TB, ended int, settings Settings) *rig {
	spec := newSpec(0, 1<<30, 8)
	y := spec.Definition.Spec.Parameters[0]
	y.Name = "y"
	spec.Definition.Spec.Parameters = append(spec.Definition.Spec.Parameters, y)
	r := newRig(b, spec, settings)
	r.e.spec.ids = &longIDs{}
	r.ledger = nil
	r.e.Step(Capacity{At: r.now, Slots: 8, Free: 8})
	for r.e.Status().Counts.Ended() < ended {
		cycle(r)
	}
	return r
}

// cycle creates, claims and completes one trial, and answers what is asked: the
// four events of a trial's life.
func cycle(r *rig) {
	r.now = r.now.Add(time.Millisecond)
	for ask := r.e.suggestions.ask; ask != nil; ask = r.e.suggestions.ask {
		list := make([]optimizer.Suggestion, ask.N)
		for i := range list {
			x := float64(len(r.e.trials.all)+i) / (1 << 31)
			list[i] = optimizer.Suggestion{Point: study.Point{"x": x, "y": x / 2}, Source: optimizer.SourceModel}
		}
		r.e.Step(Suggested{At: r.now, Ask: ask, Suggestions: list})
	}
	t := r.e.trials.open[0]
	id := r.e.spec.attemptID(t, t.rec.Last())
	r.e.Step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: id, Worker: "w", At: r.now}})
	r.e.Step(Alive{At: r.now, Worker: "w", Attempt: id})
	value := 1 / float64(id.Trial)
	r.e.Step(Finished{At: r.now, Result: &messaging.Result{
		AttemptID: id, Worker: "w", Outcome: messaging.OutcomeCompleted, Values: []float64{value},
		Metrics: map[string]float64{"loss": value}, Started: r.now.Add(-time.Second), Ended: r.now,
	}})
	r.e.Step(Tick{At: r.now})
}

// BenchmarkTrial measures one trial's events in a study with no, a thousand or ten
// thousand ended trials. The cost must not grow.
func BenchmarkTrial(b *testing.B) {
	for _, ended := range []int{0, 1000, 10000} {
		b.Run(strconv.Itoa(ended)+" ended", func(b *testing.B) {
			r := aged(b, ended, Settings{})
			b.ReportAllocs()
			for b.Loop() {
				cycle(r)
			}
		})
	}
}

// heapOf returns by how many bytes the heap grows for each of many ended trials.
func heapOf(tb testing.TB, trials int, settings Settings) float64 {
	aged(tb, 1, settings) // makes what all engines share
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := aged(tb, trials, settings)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(r)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / float64(trials)
}

// BenchmarkMemory measures the memory of an engine with 50,000 ended trials of two
// parameters, with an optimiser that needs their points and with a blind one.
func BenchmarkMemory(b *testing.B) {
	for name, settings := range map[string]Settings{"model": {}, "blind": {Blind: true}} {
		b.Run(name, func(b *testing.B) {
			var bytes float64
			for b.Loop() {
				bytes = heapOf(b, 50_000, settings)
			}
			b.ReportMetric(bytes, "bytes/trial")
		})
	}
}

// TestEndedTrialsAreSmall holds how much of the heap an ended trial takes: a packed record of
// about 250 bytes, 112 bytes that the rules read, and its places in lists. An optimiser that
// is not blind also needs the point, as a map of 350 bytes, and the outcome. The bounds are
// far below the 1.8 kB of a record that is not packed.
func TestEndedTrialsAreSmall(t *testing.T) {
	needsAll(t)
	if bytes := heapOf(t, 5000, Settings{}); bytes > 920 {
		t.Errorf("an ended trial takes %.0f bytes", bytes)
	}
	if bytes := heapOf(t, 5000, Settings{Blind: true}); bytes > 450 {
		t.Errorf("an ended trial of a blind optimiser takes %.0f bytes", bytes)
	}
}

// A blind optimiser is told at least as many of the latest observations as it needs, and a
// snapshot of them never changes. Staleness counts all.
func TestBlindIsToldTheLatest(t *testing.T) {
	r := aged(t, 3*optimizer.BlindObservations, Settings{Blind: true})
	before := r.e.Problem().Observations
	copied := slices.Clone(before)
	for range 2 * optimizer.BlindObservations {
		cycle(r)
	}
	if diff := cmp.Diff(copied, before); diff != "" {
		t.Errorf("a snapshot has changed:\n%s", diff)
	}
	told := r.e.Problem().Observations
	if len(told) < optimizer.BlindObservations || len(told) > 2*optimizer.BlindObservations {
		t.Errorf("told %d observations, want between %d and twice that", len(told), optimizer.BlindObservations)
	}
	for i, o := range told {
		if want := r.e.trials.ended[len(r.e.trials.ended)-len(told)+i]; o.Trial != want.facts().number {
			t.Fatalf("observation %d of %d is of trial %d, want %d", i+1, len(told), o.Trial, want.facts().number)
		}
	}
	if n := r.e.suggestions.newAsk(1).Observed(); n != 5*optimizer.BlindObservations {
		t.Errorf("%d observations, want %d", n, 5*optimizer.BlindObservations)
	}
}

// TestHistoryIsNotCopied: a trial's events allocate about as much after 5,000
// trials as after 200; one copy of the history would be 200 kB (40 kB of 1,000 trials).
func TestHistoryIsNotCopied(t *testing.T) {
	cost := func(ended int) uint64 {
		r := aged(t, ended, Settings{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const n = 200
		for range n {
			cycle(r)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / n
	}
	n := 5000
	if testing.Short() {
		n = 1000
	}
	if few, many := cost(200), cost(n); many > few+20_000 {
		t.Errorf("a trial allocates %d bytes after 200 trials, %d after %d", few, many, n)
	}
}

// BenchmarkMeasurement measures one report of a program. The cost must not grow with the
// number of earlier reports.
func BenchmarkMeasurement(b *testing.B) {
	for _, before := range []int64{0, 900, 10000} {
		b.Run(strconv.FormatInt(before, 10)+" before", func(b *testing.B) {
			r := aged(b, 1, Settings{})
			t := r.e.trials.open[0]
			m := &messaging.Measurement{AttemptID: r.e.spec.attemptID(t, t.rec.Last()), Worker: "w", Metrics: map[string]float64{"loss": 1}}
			report := func() {
				m.Step++
				r.e.Step(Measured{At: r.now, Measurement: m})
			}
			for range before {
				report()
			}
			b.ReportAllocs()
			for b.Loop() {
				report()
			}
		})
	}
}

// A record comes back from its packed form as it was, and so do its facts.
func TestPackedRecordsComeBack(t *testing.T) {
	full := *typical()
	full.Labels, full.Note, full.Cancelled, full.RequestID, full.Checkpoint = map[string]string{"k": "v"}, "<note>", "why", "id", "s3://x"
	full.Rung, full.Predecessor, full.Point = 2, 1, study.Point{"a": 0.5, "b": int64(3), "c": true, "d": "text", "e": 2.0}
	full.Stopped = &record.Stopped{Attempt: 2, Step: 3, Values: study.Values{1}, Reason: "worse", At: epoch}
	for _, want := range []record.Trial{full, {Number: 7, State: study.TrialCancelled, Point: study.Point{}}} {
		before := &trial{work: &work{rec: want}}
		facts := before.facts()
		s := step{whole: []*trial{before}}
		s.pack()
		if before.work != nil {
			t.Fatalf("trial %d has ended and is not packed", want.Number)
		}
		if diff := cmp.Diff(want, before.copy()); diff != "" {
			t.Errorf("a record changed (-packed +unpacked):\n%s", diff)
		}
		if got := before.facts(); fmt.Sprint(got) != fmt.Sprint(facts) {
			t.Errorf("the facts were %+v, and are %+v", facts, got)
		}
	}
}
