package replay_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/replay"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
)

// towards is an optimiser whose points depend on the references that it is told: an unknown one
// counts as 0.
type towards struct{ optimizer.Optimizer }

func (o towards) Suggest(ctx context.Context, p *optimizer.Problem, state optimizer.State, n int, rng *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	batch, state, err := o.Optimizer.Suggest(ctx, p, state, n, rng)
	for _, s := range batch {
		x := s.Point["x"].(float64)
		for k := range p.Objectives {
			if r := p.Objectives[k].Reference; r != nil {
				x += *r
			}
		}
		s.Point["x"] = math.Mod(x, 1)
	}
	return batch, state, err
}

// Each request is made again with the references of its time, which the study may have changed
// since.
func TestReferencesOfTheTime(t *testing.T) {
	spec := definition("random", 9)
	s := &spec.Definition.Spec
	s.Objective, s.Initial = study.Objective{}, nil
	s.Several = []study.Objective{{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
		{Metric: "size", Direction: study.Minimize, Take: study.TakeLast}}
	own := replay.Optimizers{Suggest: towards{random.New()}, Fallback: sobol.New()}
	l := &leader{
		t: t, rng: rand.New(rand.NewPCG(1, 0)), spec: spec, own: own, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		trials: map[int]record.Trial{},
	}
	e, out, err := engine.New(l.spec, l, l.settings, l.now)
	if err != nil {
		t.Fatal(err)
	}
	l.e = e
	l.commit(out)
	for _, reference := range []*float64{nil, new(0.25), new(0.5)} {
		edited := l.spec
		edited.Definition.Spec.Several = slices.Clone(s.Several)
		edited.Definition.Spec.Several[0].Reference = reference
		l.step(engine.Update{At: l.now, Study: edited})
		l.step(engine.Seek{At: l.now, Client: client, Want: 3})
		for len(l.asks) > 0 {
			l.answer()
		}
		for _, a := range l.e.Open() {
			l.step(engine.Told{At: l.now, Client: client, Trial: a.Attempt.Trial, Outcome: messaging.OutcomeCompleted, Values: study.Values{1, 2}})
		}
	}
	trials := l.records()
	found, err := replay.Run(t.Context(), l.spec, trials, own, nil)
	if err != nil || found.First != nil || found.Same != 9 {
		t.Errorf("%+v: %v, %v; want 9 trials that are the same", found, found.First, err)
	}
	for i := range trials {
		trials[i].Ask = new(*trials[i].Ask)
		trials[i].Ask.References = nil
	}
	if found, err := replay.Run(t.Context(), l.spec, trials, own, nil); err != nil || found.First == nil || found.First.Trial > 3 {
		t.Errorf("with the references of today: %+v, %v; want a difference at once", found, err)
	}
}
