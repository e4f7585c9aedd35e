package figure

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Trial is what figures and pages need of a trial. It takes a few hundred bytes, so that a
// server can keep the trials of large studies, and is never changed.
type Trial struct {
	Number int
	State  study.TrialState
	Source optimizer.Source
	// Value is the objective's: of a completed trial, or what a pruned one had reached. It
	// is NaN if there is none.
	Value float64
	// Values are those of all objectives if there are several; Value is then the first.
	Values study.Values
	// Outside says that its point is not in the study's space, which was edited; it is only set
	// for several objectives.
	Outside bool
	// At holds a number for each axis: the parameter's value, or the place of its value
	// among its choices; NaN if the parameter is not active.
	At        []float64
	Staleness int
	// Request is the number of the request that suggested it. Made and Position are the
	// ledger positions of its creation and its end. All three are 0 where a trial does not
	// come from a ledger, except that Position then is the time at which the result counted:
	// it always tells the order in which trials ended, and is 0 until then.
	Request        int
	Made, Position int64
	// The stages of the trial, 0 for those not reached (see record.Times).
	Asked, Suggested, Created, Claimed, Started, Ended, Folded Moment
	// Phases are the parts of its last evaluation, if that was in a Job of Kubernetes.
	Phases []view.Phase
	// Worker is the last one that had it, and Attempts are those that a worker had.
	Worker   string
	Attempts []Attempt
	// Reason says in a line why it has no final value, or which limit it is outside of; "" if
	// neither is so, or nothing is known.
	Reason string
	// Stopped is the step at which the trial was told to stop early, and Predecessor the trial that it goes on with; 0 for none.
	Stopped     int64
	Predecessor int
	// Over says that the trial completed outside of a limit.
	Over bool
	// Metrics are those that limits are on, but for the objectives; nil where there are none.
	Metrics map[string]float64
}

// Attempt is an attempt that a worker had from Claimed to Ended, which is 0 while it runs.
type Attempt struct {
	Worker         string
	Number         int
	Claimed, Ended Moment
	State          study.AttemptState
	// Reason says in a few words why it failed.
	Reason string
}

// Moment is a time in nanoseconds since 1970; 0 for none.
type Moment int64

// At returns a time as a moment.
func At(t time.Time) Moment {
	if t.IsZero() {
		return 0
	}
	return Moment(t.UnixNano())
}

// Time returns the moment as a time.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}

// Minus returns the time between two moments; 0 if one is missing.
func (m Moment) Minus(o Moment) time.Duration {
	if m == 0 || o == 0 {
		return 0
	}
	return time.Duration(m - o)
}

// Axes are the parameters of a study that can vary, in the order of its file.
type Axes []study.Parameter

// AxesOf returns the axes of a study.
func AxesOf(s *study.Study) Axes {
	return slices.DeleteFunc(slices.Clone(s.Spec.Parameters), func(p study.Parameter) bool { return p.Type == study.Fixed })
}

// Index returns the place of the parameter with a name; -1 for none.
func (a Axes) Index(name string) int {
	return slices.IndexFunc(a, func(p study.Parameter) bool { return p.Name == name })
}

// Numeric reports whether a parameter is a number.
func Numeric(p *study.Parameter) bool { return p.Type == study.Float || p.Type == study.Int }

// Text returns the value at a place on a parameter's axis as people see it.
func Text(p *study.Parameter, at float64) string {
	if n, finite := p.Cardinality(); math.IsNaN(at) || !Numeric(p) && finite && (at < 0 || int(at) >= n) {
		return "–"
	}
	if Numeric(p) {
		return view.Number(at)
	}
	return view.Value(p.At(int(at)))
}

// axis returns a parameter's axis for pictures.
func axis(p *study.Parameter) picture.Parameter {
	out := picture.Parameter{Name: p.Name, Whole: p.Type == study.Int, Key: "p." + p.Name}
	if Numeric(p) {
		out.Low, out.High = *p.Min, *p.Max
		switch {
		case p.Scale == study.Log:
			out.Scale = picture.Log
		case p.Scale == study.Logit && p.Type == study.Float:
			out.Scale = picture.Logit
		}
		return out
	}
	out.Levels = Levels(p)
	return out
}

// Levels returns the choices of a parameter that is no number, in the order of their places.
func Levels(p *study.Parameter) (levels []string) {
	n, _ := p.Cardinality()
	for k := range n {
		levels = append(levels, study.Format(p.At(k)))
	}
	return levels
}

// Of returns a trial of the ledger.
func Of(spec *study.Spec, a Axes, t *record.Trial) *Trial {
	v := view.OfTrial(*t)
	v.Mark(spec)
	f := From(a, &v)
	for _, metric := range spec.LimitMetrics() {
		if value, ok := t.Metrics[metric]; ok {
			if f.Metrics == nil {
				f.Metrics = map[string]float64{}
			}
			f.Metrics[metric] = value
		}
	}
	f.Request, f.Made, f.Position, f.Asked = t.Request, t.Created, t.Ended, At(t.Times.Asked)
	return f
}

// From returns a trial as the API shows it.
func From(a Axes, t *view.Trial) *Trial {
	f := &Trial{
		Number: t.Trial, State: t.State, Source: t.Source, Value: math.NaN(), Values: t.Values, At: make([]float64, len(a)),
		Staleness: t.Staleness,
		Suggested: At(t.Times.Suggested), Created: At(t.Times.Created), Claimed: At(t.Times.Claimed), Started: At(t.Times.Started),
		Ended: At(t.Times.Ended), Folded: At(t.Times.Folded), Phases: t.Phases,
	}
	f.Position = int64(cmp.Or(f.Folded, f.Ended))
	if f.Predecessor = t.Predecessor; t.Stopped != nil && t.State == study.TrialPruned {
		f.Stopped = t.Stopped.Step
	}
	if t.Value != nil {
		f.Value = *t.Value
	}
	for i := range a {
		f.At[i] = math.NaN()
		if raw, ok := t.Parameters[a[i].Name]; ok {
			f.At[i] = diagnosis.Place(&a[i], raw)
		}
	}
	for _, r := range t.Runs {
		f.Worker = cmp.Or(r.Worker, f.Worker)
		if claimed := cmp.Or(At(r.Claimed), At(r.Started)); claimed != 0 {
			f.Attempts = append(f.Attempts, Attempt{cmp.Or(r.Worker, "unknown"), r.Number, claimed, At(r.Ended), r.State, r.Reason})
		}
	}
	switch f.Over = len(t.Exceeded) > 0; {
	case f.Over:
		f.Reason = short("outside of " + strings.Join(t.Exceeded, ", "))
	case t.State == study.TrialPruned && t.Stopped != nil:
		f.Reason = t.Stopped.Reason
	case t.State != study.TrialCompleted && t.Failure != nil:
		f.Reason = short(view.FailureLine(t.Failure))
	}
	return f
}

// longestReason bounds the bytes of a reason that are kept: pictures show it on hovering.
const longestReason = 200

// short returns the beginning of a text, and keeps no more of it in memory.
func short(text string) string {
	if len(text) <= longestReason {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:longestReason], "") + "…"
}

// Counts reports whether the trial has a final value and is within all limits.
func (t *Trial) Counts() bool { return t.Completed() && !t.Over }

// Completed reports whether the trial has a final value.
func (t *Trial) Completed() bool { return t.State == study.TrialCompleted && !math.IsNaN(t.Value) }

// Took returns how long the evaluation has run by now; 0 if it has not begun.
func (t *Trial) Took(now Moment) time.Duration { return cmp.Or(t.Ended, now).Minus(t.Started) }

// Ran returns how long the program of the last attempt ran; 0 if it has not ended (view.Trial.Ran).
func (t *Trial) Ran() time.Duration {
	v := view.Trial{Times: view.Times{Started: t.Started.Time(), Ended: t.Ended.Time()}, Phases: t.Phases}
	return v.Ran()
}

// View returns the trial as a diagnosis takes it.
func (t *Trial) View(a Axes) view.Trial {
	v := view.Trial{
		Trial: t.Number, State: t.State, Parameters: view.Parameters{}, Values: t.Values, Metrics: t.Metrics, Phases: t.Phases,
		Predecessor: t.Predecessor,
		Times:       view.Times{Folded: time.Unix(0, t.Position)},
	}
	if t.Started != 0 {
		v.Times.Started = t.Started.Time()
	}
	if t.Ended != 0 {
		v.Times.Ended = t.Ended.Time()
	}
	if value := t.Value; t.Completed() {
		v.Value = &value
	} else if t.State == study.TrialPruned {
		v.Stopped = &view.Stopped{Step: t.Stopped}
		if !math.IsNaN(value) {
			v.Stopped.Value = &value
		}
	}
	for i, at := range t.At {
		if p := &a[i]; math.IsNaN(at) {
			continue
		} else if Numeric(p) {
			v.Parameters[p.Name] = at
		} else {
			v.Parameters[p.Name] = p.At(int(at))
		}
	}
	return v
}

// Problem returns what an optimiser sees of trials, and how long each of these observations took.
func Problem(s *study.Study, trials []*Trial) (*optimizer.Problem, []time.Duration, error) {
	return diagnosis.Problem(s, viewed{AxesOf(s), trials})
}

// Ends is diagnosis.Ends of a study's trials.
func Ends(ctx context.Context, s *study.Study, trials []*Trial, slots int, now time.Time) time.Time {
	return diagnosis.Ends(ctx, s, viewed{AxesOf(s), trials}, slots, now)
}

// viewed are trials as a diagnosis takes them.
type viewed struct {
	axes   Axes
	trials []*Trial
}

// Len implements view.Trials.
func (v viewed) Len() int { return len(v.trials) }

// At implements view.Trials.
func (v viewed) At(i int) view.Trial { return v.trials[i].View(v.axes) }

// Ended returns the trials that count as evaluations, in the order in which they ended.
// Cancelled trials do not count.
func Ended(trials []*Trial) (ended []*Trial) {
	for _, t := range trials {
		if t.State.Terminal() && t.State != study.TrialCancelled {
			ended = append(ended, t)
		}
	}
	slices.SortStableFunc(ended, func(a, b *Trial) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Number, b.Number))
	})
	return ended
}

// Top returns up to n completed trials within all limits with the best values, the best first.
func Top(trials []*Trial, d study.Direction, n int) (top []*Trial) {
	for _, t := range trials {
		if t.Counts() {
			top = append(top, t)
		}
	}
	slices.SortFunc(top, func(a, b *Trial) int {
		return cmp.Or(cmp.Compare(d.Cost(a.Value), d.Cost(b.Value)), cmp.Compare(a.Number, b.Number))
	})
	return top[:min(max(n, 0), len(top))]
}

// StateText is the trial's state as people see it.
func (t *Trial) StateText() string {
	if t.Over {
		return StateText(t.State) + " outside of a limit"
	}
	return StateText(t.State)
}

// StateText is a state as people see it: they need not know that a trial was claimed.
func StateText(s study.TrialState) string {
	if s == study.TrialClaimed {
		s = study.TrialRunning
	}
	return strings.ToLower(string(s))
}

// state returns a trial's state as pictures show it. One that is outside of a limit has no
// place among the values that compare.
func (t *Trial) state() picture.State {
	if t.Over {
		return picture.Infeasible
	}
	if t.State.Terminal() {
		return picture.State(StateText(t.State))
	}
	return picture.Running
}

// state returns how an attempt of the trial ended. Only the attempt that answered says
// whether its trial is infeasible: an earlier one of it that failed has failed.
func (a *Attempt) state(of *Trial) picture.State {
	switch a.State {
	case study.AttemptSucceeded:
		if of.State == study.TrialInfeasible {
			return picture.Infeasible
		}
		return picture.Completed
	case study.AttemptFailed:
		return picture.Failed
	case study.AttemptPruned:
		return picture.Pruned
	case study.AttemptLost:
		return picture.Lost
	case study.AttemptHandedBack, study.AttemptCancelled:
		return picture.Cancelled
	}
	return picture.Running
}
