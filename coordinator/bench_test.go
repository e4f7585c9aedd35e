package coordinator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/study"
)

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
