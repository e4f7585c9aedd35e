package fantasia

import (
	"context"
	"iter"

	"github.com/fantasia-hpo/fantasia/internal/library"
)

// StudyOf is a study that judges trials by several criteria: one to eight objectives, and up to 16
// limits. Only a trial within all limits can be on the front. An evaluation returns a T, such as a struct of what was
// measured, and each [Criterion] reads its value from it. Safe for concurrent use, if the functions
// of the criteria are.
type StudyOf[T any] struct {
	study    *Study
	criteria []Criterion[T]
}

// Optimal is a trial on a front: no other one within all limits is better in one objective without
// being worse in another. Of a single objective, it has the best value.
type Optimal struct {
	Trial Result
	// Knee says that a little more of one objective costs most of the others from here. At most one
	// trial of a front has it, and only of a front that has such a bulge.
	Knee     bool
	expected map[string]library.Expectation // by objective
}

// Optimize opens a study of several criteria, as [Minimize] does a study of a single value. The
// algorithms that take several objectives are "hebo", "gp", "tpe", "nsga2", "sobol" and "random"; all
// of these but "tpe" take limits. A space with a [Space.Fidelity] has neither.
func Optimize[T any](space *Space, options Options, criteria ...Criterion[T]) (*StudyOf[T], error) {
	objectives, limits, err := parts(criteria)
	if err != nil {
		return nil, err
	}
	u, err := open(space, options, objectives, limits)
	if err != nil {
		return nil, err
	}
	return &StudyOf[T]{u, criteria}, nil
}

// Run is like [Study.Run]. A trial with an objective whose value is not finite counts as
// [ErrInfeasible].
func (s *StudyOf[T]) Run(ctx context.Context, evaluate func(ctx context.Context, t *Trial) (T, error)) error {
	if evaluate == nil {
		return errNoObjective
	}
	return s.study.run(ctx, func(ctx context.Context, t *Trial) (library.Measured, error) {
		v, err := evaluate(ctx, t)
		if err != nil {
			return library.Measured{}, err
		}
		return measure(s.criteria, v), nil
	})
}

// Ask is like [Study.Ask].
func (s *StudyOf[T]) Ask(ctx context.Context) (*Trial, error) { return s.study.Ask(ctx) }

// Tell is like [Study.Tell].
func (s *StudyOf[T]) Tell(t *Trial, value T, err error) error {
	var m library.Measured
	if err == nil {
		m = measure(s.criteria, value)
	}
	return s.study.tell(t, m, err)
}

// Enqueue is like [Study.Enqueue].
func (s *StudyOf[T]) Enqueue(values ...Assignment) error { return s.study.Enqueue(values...) }

// Continue is like [Study.Continue].
func (s *StudyOf[T]) Continue(trial int) error { return s.study.Continue(trial) }

// Add is like [Study.Add].
func (s *StudyOf[T]) Add(value T, values ...Assignment) error {
	return s.study.add(measure(s.criteria, value), values)
}

// Front returns the trials that no other one beats: the best in the first objective first. Trials
// outside of a limit, or with a point outside of the space, are not on it. The error wraps ErrNothing
// if no trial is. If evaluations are noisy, see [StudyOf.Recommended].
func (s *StudyOf[T]) Front() ([]Optimal, error) { return s.study.front(s.study.led().Front()) }

// Recommended returns the front to use if evaluations are noisy, of which some trials may be on the
// front by luck: that of the values which the optimiser's model expects, at most 64 trials. See
// [Criterion.Expected]. Of a single objective, it is one trial. The rest is as for
// [Study.Recommended].
func (s *StudyOf[T]) Recommended(ctx context.Context) ([]Optimal, error) {
	return s.study.recommended(ctx)
}

// Trials is like [Study.Trials].
func (s *StudyOf[T]) Trials() iter.Seq2[Result, error] { return s.study.Trials() }

// Curve is like [Study.Curve].
func (s *StudyOf[T]) Curve(trial int) ([]Measurement, error) { return s.study.Curve(trial) }

// Close is like [Study.Close].
func (s *StudyOf[T]) Close() error { return s.study.Close() }
