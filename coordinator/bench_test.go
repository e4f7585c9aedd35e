package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkMeasurement measures what a program's report costs the leader's loop, from
// reading the stream's entry to adding the curve to the next commit.
func BenchmarkMeasurement(b *testing.B) {
	e, out, err := engine.New(record.Study{ID: "s", Definition: *newStudy("s", 100, 1)}, drive.IDs{}, engine.Settings{}, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	out = e.Step(engine.Suggested{At: time.Now(), Ask: out.Ask, Suggestions: []optimizer.Suggestion{{Point: study.Point{"x": 0.5}}}})
	r := &run{spec: e.Spec(), status: e.Status(), engine: e}
	log := slog.New(slog.DiscardHandler)
	j := &journal{log: log, batch: &ledger.Batch{}, curves: &ledger.Batch{}}
	s := &studies{log: log, journal: j, runs: map[string]*run{"s": r}}
	in := &intake{log: log, bus: membus.New(membus.Options{}).Leader(), studies: s, journal: j,
		curve: func(context.Context, string, int) (*curve.Curve, error) { return nil, nil }}
	m := &messaging.Measurement{AttemptID: messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1, Nonce: out.Publish[0].Nonce}, Worker: "w"}
	b.ReportAllocs()
	for b.Loop() {
		m.Step++
		m.Metrics = map[string]float64{"loss": 1 / float64(m.Step)}
		entry := messaging.Entry{Stream: messaging.StreamMetric, Cursor: messaging.Cursor{Sequence: uint64(m.Step)}, Measurement: m}
		if err := in.entry(b.Context(), &entry, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	if j.curves.Len() < 2 {
		b.Fatal("nothing is to be stored")
	}
}

// BenchmarkBesideSlowStudy measures a study alone, and beside one whose optimiser fails and
// whose fallbacks are slow: of its 2^20 points, a constraint leaves 1024.
func BenchmarkBesideSlowStudy(b *testing.B) {
	for _, alone := range []bool{true, false} {
		b.Run(map[bool]string{true: "alone", false: "beside"}[alone], func(b *testing.B) {
			r := newRig(b, membus.Options{})
			c := r.leader(func(o *Options) {
				o.NewFallback = sobol.New
				o.NewOptimizer = func(a study.Algorithm) (optimizer.Optimizer, error) {
					if a.Name == "broken" {
						return failing{}, nil
					}
					return sampler{}, nil
				}
			})
			r.hand("w", 8, func(*messaging.Assignment) *messaging.Result {
				return &messaging.Result{Outcome: messaging.OutcomeCompleted, Values: []float64{1}}
			})
			if !alone {
				r.create(c, "slow", 1000, 2, func(s *study.Spec) {
					s.Algorithm.Name, s.Parameters = "broken", nil
					var names []string
					for i := range 20 {
						names = append(names, fmt.Sprintf("p%d", i))
						s.Parameters = append(s.Parameters, study.Parameter{Name: names[i], Type: study.Bool})
					}
					s.Constraints = []string{strings.Join(names[:10], " && ")}
				})
			}
			trials := 0
			for b.Loop() {
				const n = 500
				s := r.create(c, fmt.Sprintf("beside-%d", trials), n, 4)
				r.ends(s.ID)
				trials += n
			}
			b.ReportMetric(float64(trials)/b.Elapsed().Seconds(), "trials/s")
		})
	}
}
