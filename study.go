package fantasia

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// The errors of this package, to be tested with errors.Is.
var (
	// ErrInvalid means that an argument is wrong.
	ErrInvalid = study.ErrInvalid
	// ErrUnavailable means that the server of Options.Server did not answer for as long as
	// Options.Patience allows.
	ErrUnavailable = errors.New("the server does not answer")
	// ErrNothing means that no trial has completed, or none within all limits.
	ErrNothing = errors.New("no trial has completed")
	// ErrInUse means that another process, or another Study of this one, has the state open.
	ErrInUse = journal.ErrInUse
	// ErrDamaged means that the file of the state is damaged, or is none of this package.
	ErrDamaged = journal.ErrDamaged
	// ErrDifferent means that the state, or the server, holds a study that cannot be continued
	// with these parameters and options. The error lists the differences.
	ErrDifferent = errors.New("the study differs from the one that is kept")
	// ErrEnded means that the study has ended, or that a trial has ended that is told.
	ErrEnded = errors.New("ended")
	// ErrFailed means that the study has ended without a result.
	ErrFailed = errors.New("the study failed")
	// ErrClosed means that the study was closed.
	ErrClosed = errors.New("the study is closed")

	// ErrInfeasible is what an objective returns, or wraps, for a point that cannot be
	// evaluated: the optimiser learns to avoid such points.
	ErrInfeasible = errors.New("infeasible")
	// ErrStopped is what an objective returns, or wraps, after it has stopped a trial early,
	// because ShouldStop is true. Trial.Report returns it.
	ErrStopped = errors.New("stopped early")
	// ErrInterrupted is what an objective returns, or wraps, if it could not finish the
	// evaluation for a reason that has nothing to do with the point: the trial is evaluated
	// again.
	ErrInterrupted = errors.New("interrupted")
)

// Study is a study in this process, or on the server of Options.Server. Safe for concurrent use.
type Study struct {
	space    *Space
	parallel int
	tracer   trace.Tracer
	lead     leader
}

// leader leads a study and keeps it: an engine in this process, or a server. Its methods are those
// of Study with the same names, and of Trial.
type leader interface {
	ask(ctx context.Context) (*Trial, error)
	tell(t *Trial, found measured, err error) error
	// turn ends a trial as tell does, also one that has ended already, and returns the next one as ask does.
	turn(ctx context.Context, t *Trial, found measured, err error) (*Trial, error)
	// report notes what a trial has reported, and returns what instruction does.
	report(t *Trial, metric string, step int, value float64) error
	// metric is the metric that Trial.Report tells and Study.Curve returns.
	metric() string
	// instruction returns why the evaluation of a trial should end; nil if it should not.
	instruction(t *Trial) error
	// enqueue has a raw point evaluated, and add adds one with its value.
	enqueue(point map[string]any) error
	add(found measured, point map[string]any) error
	// outcome returns how the study has ended, as Run does; nil with false if it has not.
	outcome() (err error, ended bool)
	best() (Result, error)
	trials() iter.Seq2[Result, error]
	curve(trial int, metric string) ([]Measurement, error)
	// front returns the front, the best in the first objective first.
	front() ([]Optimal, error)
	// recommended returns the recommended front: of a single objective, one trial.
	recommended(ctx context.Context) ([]Optimal, error)
	close() error
}

// Minimize opens a study that looks for the point of a space with the smallest value, and begins
// it if the state, or the server, holds none of its name. The error wraps ErrInvalid, ErrInUse,
// ErrDamaged, ErrDifferent or ErrUnavailable, or is that of the file system or of the server. Close
// the study when it is no longer needed.
func Minimize(space *Space, options Options) (*Study, error) {
	return open(space, options, single(study.Minimize))
}

// Maximize is like Minimize, but looks for the largest value.
func Maximize(space *Space, options Options) (*Study, error) {
	return open(space, options, single(study.Maximize))
}

func open(s *Space, o Options, a *aims) (*Study, error) {
	definition, err := o.definition(s, a)
	if err := errors.Join(o.check(s, a), err); err != nil {
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
	u := &Study{space: s, parallel: max(1, o.Parallel), tracer: provider.Tracer("github.com/fantasia-hpo/fantasia")}
	if o.Server != nil {
		u.lead, err = openOnServer(s, &o, a, definition, compiled)
	} else {
		u.lead, err = openInProcess(s, &o, a, definition, compiled)
	}
	if err != nil {
		return nil, err
	}
	s.made = true
	return u, nil
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
func (s *Study) Ask(ctx context.Context) (*Trial, error) { return s.lead.ask(ctx) }

// Tell ends a trial of Ask with the objective's value, or with an error as an objective of Run
// returns it. The value is ignored if the error is not nil. When Tell returns nil, the result is
// in the state's file, or on the server's disk. Telling a trial again that has ended is an error
// that wraps ErrEnded. After an error that wraps ErrUnavailable, Tell can be called again with the
// same result.
func (s *Study) Tell(t *Trial, value float64, err error) error {
	return s.lead.tell(t, measured{values: study.Values{value}}, err)
}

// Enqueue has a point evaluated before the next suggestion. It counts towards Options.Trials. All
// parameters that are active at the point must be given.
func (s *Study) Enqueue(values ...Assignment) error {
	point, err := s.space.raw(values)
	if err != nil {
		return err
	}
	return s.lead.enqueue(point)
}

// Add adds a trial that was evaluated elsewhere, with its value, for the optimiser to learn from.
// It does not count towards Options.Trials. All parameters that are active at the point must be
// given.
func (s *Study) Add(value float64, values ...Assignment) error {
	return s.add(measured{values: study.Values{value}}, values)
}

func (s *Study) add(found measured, values []Assignment) error {
	point, err := s.space.raw(values)
	if err != nil {
		return err
	}
	return s.lead.add(found, point)
}

// Best returns the completed trial with the best value, the earliest of equal ones. The error
// wraps ErrNothing if none has completed. If evaluations are noisy, see [Study.Recommended].
func (s *Study) Best() (Result, error) { return s.lead.best() }

// Trials returns all trials in the order in which they were made, as they are when the loop
// reaches them. Only a study on a server can have an error, which ends the loop.
func (s *Study) Trials() iter.Seq2[Result, error] { return s.lead.trials() }

// Curve returns what a trial has reported, by step; nil if it has reported nothing. Of long curves
// at most about 1,000 points are kept, evenly. The error wraps ErrInvalid if there is no such
// trial.
func (s *Study) Curve(trial int) ([]Measurement, error) {
	return s.lead.curve(trial, s.lead.metric())
}

// Recommended returns the completed trial to use if evaluations are noisy, of which the best value
// may be luck. It may have to fit the optimiser's model. The error wraps ErrNothing, or is the
// cause of ctx's end.
func (s *Study) Recommended(ctx context.Context) (Recommendation, error) {
	list, err := s.lead.recommended(ctx)
	if err != nil {
		return Recommendation{}, err
	}
	r := list[0]
	if e, ok := r.expected[metric]; ok {
		return Recommendation{r.Trial, e.mean, e.sd}, nil
	}
	return Recommendation{r.Trial, r.Trial.Value, 0}, nil
}

// Close ends the work in the background and closes the file. Trials that are being evaluated are
// evaluated again when the study is opened again, or by another process that shares it. A study in
// memory is lost.
func (s *Study) Close() error { return s.lead.close() }
