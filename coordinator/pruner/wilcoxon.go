package pruner

import (
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

func wilcoxonEntry() Entry {
	limits := careful
	limits.minSteps = 2
	return Entry{
		Name: "wilcoxon",
		Description: "For programs that average over folds, seeds or instances and report each as a step: " +
			"stops a trial that is significantly worse than the best one.",
		Settings: append(limits.settings(),
			setting.Setting{
				Name: "pValue", Doc: "Stop a trial if a Wilcoxon signed-rank test gives less than this probability.", Default: 0.1, Max: 1,
			},
			setting.Setting{Name: "minCompared", Doc: "Stop no trial that shares fewer steps with the best one.", Default: 2, Min: 2, Max: 1e6}),
		rule: func(v setting.Values, d study.Direction) (rule, error) {
			return &wilcoxon{p: v.Float("pValue"), fewest: v.Int("minCompared"), direction: d}, nil
		},
	}
}

// wilcoxon races trials over instances: a trial is stopped if a signed-rank test says
// that it is worse than the best completed trial on the instances that both have
// (Optuna's WilcoxonPruner). A step is an instance, not a time.
type wilcoxon struct {
	p         float64
	fewest    int // steps that both have
	direction study.Direction
	best      *history
}

func (*wilcoxon) seen(*history) {}

// ended keeps the best completed trial; of equal ones that with the smaller number, so that the
// order in which a new leader tells them does not matter.
func (w *wilcoxon) ended(h *history) {
	if !h.completed || math.IsNaN(h.final) {
		return
	}
	if w.best == nil || h.final < w.best.final || h.final == w.best.final && h.number < w.best.number {
		w.best = h
	}
}

// judge compares the trial with the best completed one, step by step. A trial whose mean is not
// worse goes on whatever the test says, since the test is about ranks.
func (w *wilcoxon) judge(h *history) string {
	if w.best == nil || len(w.best.points) == 0 {
		return ""
	}
	var differences []float64
	i := 0
	for _, p := range h.points {
		for i < len(w.best.points) && w.best.points[i].step < p.step {
			i++
		}
		if i < len(w.best.points) && w.best.points[i].step == p.step {
			if theirs := w.best.points[i].cost; p.cost == theirs { // also if both have diverged
				differences = append(differences, 0)
			} else {
				differences = append(differences, p.cost-theirs)
			}
		}
	}
	mine, theirs := mean(h.points), mean(w.best.points)
	if len(differences) < w.fewest || !study.Finite(theirs) || mine <= theirs {
		return ""
	}
	if p := SignedRank(differences); p < w.p {
		return fmt.Sprintf("over %d steps it is worse than trial %d, the best one, with a p-value of %.2g (mean %g against %g)",
			len(differences), w.best.number, p, w.direction.Cost(mine), w.direction.Cost(theirs))
	}
	return ""
}

func mean(points []point) float64 {
	var sum float64
	for _, p := range points {
		sum += p.cost
	}
	return sum / float64(len(points))
}
