package pruner

import (
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

func patientEntry() Entry {
	limits := careful
	limits.patience = 10
	return Entry{
		Name:        "patient",
		Description: "Stops a trial that has stopped improving, without comparing it with others.",
		Settings:    limits.settings(),
		rule: func(v setting.Values, d study.Direction) (rule, error) {
			if v.Int("patience") == impatient {
				return nil, &setting.Error{Name: "patience", Value: impatient, Reason: "an integer of at least 0"}
			}
			return &patient{patience: v.Int("patience"), delta: v.Float("minDelta"), direction: d}, nil
		},
	}
}

// patient stops a trial whose last patience+1 costs all exceed an earlier one by more
// than delta (Optuna's PatientPruner). As a limit of another rule, it only says when that rule is asked.
type patient struct {
	patience  int
	delta     float64
	direction study.Direction
}

// seen keeps the last patience+1 costs, and the least of those before them.
func (p *patient) seen(h *history) {
	if h.recent == nil {
		h.before = math.Inf(1)
	}
	h.recent = append(h.recent, h.last().cost)
	if len(h.recent) > p.patience+1 {
		h.before = min(h.before, h.recent[0])
		h.recent = append(h.recent[:0], h.recent[1:]...)
	}
}

func (p *patient) ended(h *history) { h.recent = nil }

func (p *patient) judge(h *history) string {
	least := slices.Min(h.recent)
	if math.IsInf(least, 1) && len(h.recent) > p.patience {
		return fmt.Sprintf("its last %d reports are NaN or infinite", len(h.recent))
	}
	if !(h.before+p.delta < least) {
		return ""
	}
	return fmt.Sprintf("its last %d reports are worse than its %g before them", p.patience+1, p.direction.Cost(h.before))
}
