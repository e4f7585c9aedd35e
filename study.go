package fantasia

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/internal/library/inprocess"
	"github.com/fantasia-hpo/fantasia/internal/library/onserver"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// The errors of this package, to be tested with errors.Is.
var (
	// ErrInvalid means that an argument is wrong.
	ErrInvalid = study.ErrInvalid
	// ErrUnavailable means that the server of Options.Server did not answer for as long as
	// Options.Patience allows.
	ErrUnavailable = library.ErrUnavailable
	// ErrNothing means that no trial has completed, or none within all limits.
	ErrNothing = library.ErrNothing
	// ErrInUse means that another process, or another Study of this one, has the state open.
	ErrInUse = journal.ErrInUse
	// ErrDamaged means that the file of the state is damaged, or is none of this package.
	ErrDamaged = journal.ErrDamaged
	// ErrDifferent means that the state, or the server, holds a study that cannot be continued
	// with these parameters and options. The error lists the differences.
	ErrDifferent = library.ErrDifferent
	// ErrEnded means that the study has ended, or that a trial has ended that is told.
	ErrEnded = library.ErrEnded
	// ErrFailed means that the study has ended without a result.
	ErrFailed = library.ErrFailed
	// ErrClosed means that the study was closed.
	ErrClosed = library.ErrClosed

	// ErrInfeasible is what an objective returns, or wraps, for a point that cannot be
	// evaluated: the optimiser learns to avoid such points.
	ErrInfeasible = library.ErrInfeasible
	// ErrStopped is what an objective returns, or wraps, after it has stopped a trial early,
	// because ShouldStop is true. Trial.Report returns it.
	ErrStopped = library.ErrStopped
	// ErrInterrupted is what an objective returns, or wraps, if it could not finish the
	// evaluation for a reason that has nothing to do with the point: the trial is evaluated
	// again.
	ErrInterrupted = library.ErrInterrupted
)

var (
	errUnopened  = fmt.Errorf("%w: the Study was not opened; want one that Minimize, Maximize or Optimize returned", ErrInvalid)
	errNoContext = fmt.Errorf("%w: the context is nil; want one such as context.Background()", ErrInvalid)
)

// Study is a study in this process, or on the server of Options.Server. Safe for concurrent use.
type Study struct {
	binding  library.Binding
	space    *Space
	seed     uint64
	parallel int
	tracer   trace.Tracer
	reported string   // the metric that Trial.Report tells
	cost     string   // the metric that Trial.Spend tells; empty for none
	criteria []string // the names of all
	name     string
	// objectives are those of the study, at least one.
	objectives []study.Objective
}

// Minimize opens a study that looks for the point of a space with the smallest value, and begins
// it if the state, or the server, holds none of its name. The error wraps ErrInvalid, ErrInUse,
// ErrDamaged, ErrDifferent or ErrUnavailable, or is that of the file system or of the server. Close
// the study when it is no longer needed.
func Minimize(space *Space, options Options) (*Study, error) {
	return open(space, options, single(study.Minimize), nil)
}

// Maximize is like Minimize, but looks for the largest value.
func Maximize(space *Space, options Options) (*Study, error) {
	return open(space, options, single(study.Maximize), nil)
}

// single returns the objective of a study of one value.
func single(direction study.Direction) []study.Objective {
	return []study.Objective{{Metric: metric, Direction: direction, Take: study.DefaultTake}}
}

func open(s *Space, o Options, objectives []study.Objective, limits []study.Limit) (*Study, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: the space is nil; want one of NewSpace", ErrInvalid)
	}
	definition, err := o.definition(s, objectives, limits)
	if err := errors.Join(o.check(definition), err); err != nil {
		return nil, err
	}
	compiled, err := s.compile(definition)
	if err != nil {
		return nil, err
	}
	provider := o.Tracer
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	u := &Study{
		space: s, seed: o.Seed, parallel: max(1, o.Parallel), tracer: provider.Tracer("github.com/fantasia-hpo/fantasia"),
		cost:     o.cost(),
		reported: cmp.Or(o.EarlyStopping.Metric, objectives[0].Metric), criteria: library.Metrics(&definition.Spec),
		name: definition.Metadata.Name, objectives: objectives,
	}
	if u.binding, err = u.bind(&o, library.Settings{Definition: definition, Space: compiled, Log: o.logger()}); err != nil {
		return nil, err
	}
	s.made = true
	return u, nil
}

// isOpen reports whether Minimize, Maximize or Optimize made the study.
func (s *Study) isOpen() bool { return s != nil && s.binding != nil }

// led returns what leads the study. Of a Study that was not opened, every call fails.
func (s *Study) led() library.Binding {
	if !s.isOpen() {
		return library.Unusable{Err: errUnopened}
	}
	return s.binding
}

// bind opens the study on its server, or else in this process.
func (s *Study) bind(o *Options, set library.Settings) (library.Binding, error) {
	if o.Progress != nil {
		set.Progress = func(p library.Progress) {
			o.Progress(Progress{Trial: s.result(p.Trial), Best: s.result(p.Best), Ended: p.Ended, Trials: p.Trials})
		}
	}
	optimiser, err := o.optimizer()
	if o.Server == nil {
		if err != nil {
			return nil, err // check has found none
		}
		return inprocess.Open(set, inprocess.Options{State: o.State, Constraints: s.space.constraints, Optimizer: optimiser})
	}
	_, models := optimiser.(optimizer.Recommender)
	return onserver.Open(set, onserver.Options{
		Server: o.Server, Code: codeOf, Patience: cmp.Or(o.Patience, defaultPatience), Parallel: s.parallel,
		Models: models || err != nil, // one that the program does not have is taken to have a model
	})
}

// compile checks and compiles the space, and completes the definition's parameters and initial
// points. The error wraps ErrInvalid.
func (s *Space) compile(definition *study.Study) (*space.Space, error) {
	compiled, err := space.New(s.params, s.constraints, definition.Spec.Initial)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for i := range s.params {
		definition.Spec.Parameters[i], _ = compiled.Parameter(s.params[i].Name)
	}
	for i, p := range compiled.Initial() {
		definition.Spec.Initial[i] = p
	}
	return compiled, nil
}

// Ask returns a trial to evaluate. Tell how it has ended. Ask waits while Options.Parallel trials
// are open. The error wraps ErrEnded if the study has ended, or is the cause of ctx's end.
func (s *Study) Ask(ctx context.Context) (*Trial, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	return s.trial(s.led().Ask(ctx))
}

// Tell ends a trial of Ask with the objective's value, or with an error as an objective of Run
// returns it. The value is ignored if the error is not nil. When Tell returns nil, the result is
// in the state's file, or on the server's disk. Telling a trial again that has ended is an error
// that wraps ErrEnded. After an error that wraps ErrUnavailable, Tell can be called again with the
// same result.
func (s *Study) Tell(t *Trial, value float64, err error) error {
	return s.tell(t, measured(value), err)
}

// Enqueue has a point evaluated before the next suggestion. It counts towards Options.Trials. All
// parameters that are active at the point must be given.
func (s *Study) Enqueue(values ...Assignment) error {
	if !s.isOpen() {
		return errUnopened
	}
	point, err := s.space.raw(values)
	if err != nil {
		return err
	}
	return s.led().Enqueue(point)
}

// Continue has a trial run to its end that was stopped early: a new trial with the same values comes
// before the next suggestion and is not stopped early. It counts towards Options.Trials, which it may
// exceed: if all of those have ended, the next Run evaluates it alone. The error wraps ErrInvalid if there
// is no such trial, it was not stopped early, another trial continues it already, or the study has ended
// for another reason.
func (s *Study) Continue(trial int) error {
	if !s.isOpen() {
		return errUnopened
	}
	return s.led().Continue(trial)
}

// Add adds a trial that was evaluated elsewhere, with its value, for the optimiser to learn from.
// It does not count towards Options.Trials. All parameters that are active at the point must be
// given.
func (s *Study) Add(value float64, values ...Assignment) error {
	return s.add(measured(value), values)
}

func (s *Study) add(found library.Measured, values []Assignment) error {
	if !s.isOpen() {
		return errUnopened
	}
	point, err := s.space.raw(values)
	if err != nil {
		return err
	}
	return s.led().Add(found, point)
}

// Best returns the completed trial with the best value, the earliest of equal ones. The error
// wraps ErrNothing if none has completed. If evaluations are noisy, see [Study.Recommended].
func (s *Study) Best() (Result, error) {
	r, err := s.led().Best()
	return s.result(r), err
}

// Trials returns all trials in the order in which they were made, as they are when the loop
// reaches them. Only a study on a server can have an error, which ends the loop.
func (s *Study) Trials() iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for r, err := range s.led().Trials() {
			if !yield(s.result(r), err) {
				return
			}
		}
	}
}

// Curve returns what a trial has reported, by step; nil if it has reported nothing. Of long curves
// at most about 1,000 points are kept, evenly. The error wraps ErrInvalid if there is no such
// trial.
func (s *Study) Curve(trial int) ([]Measurement, error) {
	return s.curve(trial, s.reported)
}

// Recommended returns the completed trial to use if evaluations are noisy, of which the best value
// may be luck. It may have to fit the optimiser's model. The error wraps ErrNothing, or is the
// cause of ctx's end.
func (s *Study) Recommended(ctx context.Context) (Recommendation, error) {
	list, err := s.recommended(ctx)
	if err != nil {
		return Recommendation{}, err
	}
	r := list[0]
	if e, ok := r.expected[metric]; ok {
		return Recommendation{r.Trial, e.Mean, e.SD}, nil
	}
	return Recommendation{r.Trial, r.Trial.Value, 0}, nil
}

// Close ends the work in the background and closes the file. Trials that are being evaluated are
// evaluated again when the study is opened again, or by another process that shares it. A study in
// memory is lost.
func (s *Study) Close() error { return s.led().Close() }
