package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// A queued point takes less memory than its record as JSON, however many parameters it has: whoever may
// enqueue points could otherwise take many times what the quota of bytes says. A point that was evaluated
// elsewhere, which the optimiser reads, takes about as much as its JSON. So it is for the next leader.
func TestQueuedPointsAreSmall(t *testing.T) {
	needsAll(t)
	largePoints(t, 1, func(p study.Point) Event { return Enqueue{At: epoch, Point: p} })
	largePoints(t, 1.25, func(p study.Point) Event { return Add{At: epoch, Point: p, Values: study.Values{1}} })
}

// largePoints fails the test if the trials that an event makes of points of 1,000 parameters take more memory
// than so many times their JSON.
func largePoints(t *testing.T, times float64, event func(study.Point) Event) {
	t.Helper()
	const parameters, points = 1000, 100
	spec := newSpec(0, 1<<20, 1)
	x := spec.Definition.Spec.Parameters[0]
	spec.Definition.Spec.Parameters = nil
	for i := range parameters {
		x.Name = fmt.Sprintf("parameter-%d", i)
		spec.Definition.Spec.Parameters = append(spec.Definition.Spec.Parameters, x)
	}
	r := newRig(t, spec, Settings{})
	random := rand.New(rand.NewPCG(1, 2))
	enqueue := func() {
		raw := study.Point{}
		for i := range parameters {
			raw[fmt.Sprintf("parameter-%d", i)] = random.Float64()
		}
		r.e.Step(event(raw))
	}
	enqueue()
	first, _ := r.e.Trial(1)
	raw, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range points {
		enqueue()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int(after.HeapAlloc-before.HeapAlloc) / points
	t.Logf("%T: a point of %d bytes of JSON takes %d, and counts as %d", event(nil), len(raw), each, r.e.Bytes()/(points+1))
	if float64(each) > times*float64(len(raw)) {
		t.Errorf("%T: a point of %d bytes of JSON takes %d", event(nil), len(raw), each)
	}
	var trials []record.Trial
	for n := range points + 1 {
		tr, _ := r.e.Trial(n + 1)
		trials = append(trials, tr)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	loaded, _, err := Load(spec, r.e.Status(), record.Model{}, trials, r.ids, Settings{}, r.now)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := int(after.HeapAlloc-before.HeapAlloc) / points; float64(each) > times*float64(len(raw)) {
		t.Errorf("%T: a loaded point of %d bytes of JSON takes %d", event(nil), len(raw), each)
	}
	if loaded.Bytes() != r.e.Bytes() {
		t.Errorf("%T: the next leader counts %d bytes, the last one %d", event(nil), loaded.Bytes(), r.e.Bytes())
	}
	runtime.KeepAlive(r)
	runtime.KeepAlive(trials)
	runtime.KeepAlive(loaded)
}
