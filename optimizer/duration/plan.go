package duration

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

const (
	// draws is how many futures a plan looks at, and mostDrawn how many new evaluations it draws in each: those beyond take what
	// these take on average.
	draws, mostDrawn = 200, 2000
)

// Plan is what a study still does.
type Plan struct {
	// Running are the evaluations that run now.
	Running []Running
	// Slots is how many run at once.
	Slots int
	// New is how many begin later, and Next what some of them may take, not empty unless New is 0.
	New  int
	Next []Estimate
}

// Running is an evaluation that has run for some seconds without an end.
type Running struct {
	Estimate
	Seconds float64
}

// Left returns in how many seconds the last evaluation will have ended: the median of futures in which every evaluation takes a
// time that is drawn from its estimate, and begins when a slot is free. The same plan and seed give the same answer.
func (p *Plan) Left(seed uint64) float64 {
	rng := rand.New(rand.NewPCG(seed, uint64(p.New)))
	ends := make([]float64, draws)
	for i := range ends {
		ends[i] = p.future(rng)
	}
	slices.Sort(ends)
	return ends[draws/2]
}

// future returns in how many seconds the study ends, in one future.
func (p *Plan) future(rng *rand.Rand) (last float64) {
	free := make(times, 0, max(p.Slots, len(p.Running)))
	for _, r := range p.Running {
		free = append(free, r.Quantile(rng.Float64(), r.Seconds)-r.Seconds)
	}
	for len(free) < max(1, p.Slots) {
		free = append(free, 0)
	}
	last = slices.Max(free)
	heap.Init(&free)
	for len(free) > max(1, p.Slots) { // more run than there will be slots
		heap.Pop(&free)
	}
	drawn, sum := min(p.New, mostDrawn), 0.0
	for range drawn {
		takes := p.Next[rng.IntN(len(p.Next))].Quantile(rng.Float64(), 0)
		sum += takes
		free[0] += takes
		last = max(last, free[0])
		heap.Fix(&free, 0)
	}
	if drawn < p.New { // these share the slots evenly, as nearly as so many do
		last += sum / float64(drawn) * float64(p.New-drawn) / float64(len(free))
	}
	return last
}

// times are when slots are free, the first one first.
type times []float64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *times) Push(v any) { *t = append(*t, v.(float64)) }

// Pop implements heap.Interface.
func (t *times) Pop() any {
	old := *t
	v := old[len(old)-1]
	*t = old[:len(old)-1]
	return v
}
