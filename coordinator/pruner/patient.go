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
func (p *patient) seen(t *trial) {
	if t.recent == nil {
		t.before = math.Inf(1)
	}
	t.recent = append(t.recent, t.last().cost)
	if len(t.recent) > p.patience+1 {
		t.before = min(t.before, t.recent[0])
		t.recent = append(t.recent[:0], t.recent[1:]...)
	}
}

func (p *patient) ended(t *trial) { t.recent = nil }

func (p *patient) judge(t *trial) string {
	least := slices.Min(t.recent)
	if math.IsInf(least, 1) && len(t.recent) > p.patience {
		return fmt.Sprintf("its last %d reports are NaN or infinite", len(t.recent))
	}
	if !(t.before+p.delta < least) {
		return ""
	}
	return fmt.Sprintf("its last %d reports are worse than its %g before them", p.patience+1, p.direction.Cost(t.before))
}
