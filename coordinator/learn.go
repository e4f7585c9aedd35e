package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// learn is Learn from the studies of this coordinator. Who may read them has been decided before. It reads the
// ledger, so it MUST NOT be called in the loop.
func (c *Coordinator) learn(ctx context.Context, s *study.Study) (*study.Study, error) {
	return Learn(ctx, s, func(string) (*ledger.Ledger, func(), error) { return c.ledger, func() {}, nil })
}

// Learn returns the study with the trials of the earlier studies that it only names. They are read once, so
// that the study's suggestions do not depend on what becomes of these studies. open returns the ledger that has
// the study of a name, and what closes it; its error wraps study.ErrNotFound if there is none. Learn returns a
// *study.Problems if one of the studies is missing, or this one could learn nothing from it.
func Learn(ctx context.Context, s *study.Study, open func(name string) (l *ledger.Ledger, done func(), err error)) (*study.Study, error) {
	named, given := 0, 0
	for i := range s.Spec.LearnFrom {
		given += len(s.Spec.LearnFrom[i].Trials)
		if s.Spec.LearnFrom[i].Trials == nil {
			named++
		}
	}
	if named == 0 {
		return s, s.Spec.CheckEarlier()
	}
	filled := *s
	filled.Spec.LearnFrom = slices.Clone(s.Spec.LearnFrom)
	for i := range filled.Spec.LearnFrom {
		e := &filled.Spec.LearnFrom[i]
		if e.Trials != nil {
			continue
		}
		// The studies that are read share what the file's own trials leave.
		read, err := readEarlier(ctx, open, e.Study, (study.MaxEarlierTrials-given)/named)
		if problem, ok := errors.AsType[*unfit](err); ok || errors.Is(err, study.ErrNotFound) {
			message := "there is no such study"
			if ok {
				message = problem.Error()
			}
			return nil, &study.Problems{List: []study.Problem{{
				Path: fmt.Sprintf("spec.learnFrom[%d].study", i), Message: fmt.Sprintf("%q: %s", e.Study, message),
			}}}
		}
		if err != nil {
			return nil, fmt.Errorf("learn from study %s: %w", e.Study, err)
		}
		if e.Direction != "" && e.Direction != read.Direction {
			return nil, &study.Problems{List: []study.Problem{{Path: fmt.Sprintf("spec.learnFrom[%d].direction", i), Message: fmt.Sprintf(
				"is %s, and the study %s has %s: leave it out", e.Direction, e.Study, read.Direction)}}}
		}
		*e = *read
	}
	return &filled, cmp.Or(filled.Spec.CheckEarlier(), checkSize(&filled))
}

func readEarlier(
	ctx context.Context, open func(name string) (*ledger.Ledger, func(), error), name string, limit int,
) (*study.Earlier, error) {
	l, done, err := open(name)
	if errors.Is(err, study.ErrNotFound) {
		return nil, &unfit{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	defer done()
	return earlier(ctx, l, name, limit)
}

// earlierTrial returns what another study learns from a completed trial. A trial that continues another, or was evaluated at a level of
// a fidelity, does not say how long a whole one takes.
func earlierTrial(spec *study.Spec, t *record.Trial) study.EarlierTrial {
	e := study.EarlierTrial{Parameters: t.Point, Value: t.Values.First()}
	if o, told := engine.Observation(spec, t); told && t.Rung == 0 && t.Predecessor == 0 {
		e.Seconds, e.Cost = o.Seconds, o.Cost
	}
	return e
}

// unfit is the reason why a study has nothing to learn from. It is a problem of the study file that names it, and not
// a failure of the coordinator.
type unfit struct{ why string }

func (e *unfit) Error() string { return e.why }

// earlier reads at most limit completed trials of a study: the best, the latest, and an even share of the others.
func earlier(ctx context.Context, l *ledger.Ledger, name string, limit int) (*study.Earlier, error) {
	summary, err := l.Study(ctx, name)
	if err != nil {
		return nil, err
	}
	spec := &summary.Study.Definition.Spec
	if len(spec.Several) > 0 {
		return nil, &unfit{"it has several objectives; learn from studies of one"}
	}
	direction := spec.FirstObjective().Direction
	var completed []study.EarlierTrial
	for from, page := 1, 500; ; {
		trials, err := l.Trials(ctx, summary.Study.ID, from, page)
		if err != nil {
			return nil, err
		}
		for i := range trials {
			if t := &trials[i]; t.State == study.TrialCompleted && len(t.Values) == 1 {
				completed = append(completed, earlierTrial(spec, t))
			}
		}
		if len(trials) < page {
			break
		}
		from = trials[len(trials)-1].Number + 1
	}
	e := study.NewEarlier(name, direction, completed, limit)
	if len(e.Trials) == 0 {
		return nil, &unfit{"it has no completed trial yet"}
	}
	return &e, nil
}
