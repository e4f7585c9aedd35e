package dashboard

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// row is what the pages of a study need of a trial. It takes a few hundred bytes and is
// never changed.
type row struct {
	number int
	state  study.TrialState
	source optimizer.Source
	// value is the objective's; NaN if there is none.
	value float64
	// params holds a number for each parameter of the study that can vary: its value, or
	// the place of its value among its choices; NaN if it is not active.
	params             []float64
	staleness, pending int
	// request is the number of the request that suggested it.
	request int
	// made and position are the ledger positions of its creation and its end; position is 0
	// while it has not ended.
	made, position int64
	asked, created moment
	started, ended moment
	worker         string
	attempts       []span
	// failure is why its last attempt failed, in a few words.
	failure string
	// mean and sd are what the model predicted when the point was suggested; NaN if it did
	// not.
	mean, sd float64
}

// span is an attempt that a worker has claimed.
type span struct {
	worker         string
	number         int
	claimed, ended moment // ended is 0 while it runs
	state          study.AttemptState
}

// moment is a time in nanoseconds since 1970; 0 for none.
type moment int64

func at(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(t.UnixNano())
}

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}

// minus returns the time between two moments; 0 if one is missing.
func (m moment) minus(o moment) time.Duration {
	if m == 0 || o == 0 {
		return 0
	}
	return time.Duration(m - o)
}

// axes are the parameters of a study that can vary, in the order of its file.
type axes []study.Parameter

func axesOf(s *study.Study) axes {
	return slices.DeleteFunc(slices.Clone(s.Spec.Parameters), func(p study.Parameter) bool { return p.Type == study.Fixed })
}

// numeric reports whether a parameter is a number.
func numeric(p *study.Parameter) bool { return p.Type == study.Float || p.Type == study.Int }

// number returns the value of a parameter as rows hold it.
func number(p *study.Parameter, raw any) float64 {
	if v, ok := study.Number(raw); ok && numeric(p) {
		return v // also a value outside of the range, which was edited
	}
	value, err := p.Convert(raw)
	if err != nil {
		return math.NaN()
	}
	switch v := value.(type) {
	case float64:
		if numeric(p) {
			return v
		}
	case int64:
		if numeric(p) {
			return float64(v)
		}
	}
	if k, ok := p.Index(value); ok {
		return float64(k)
	}
	return math.NaN()
}

// text returns a value as people see it.
func text(p *study.Parameter, v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case numeric(p):
		return view.Number(v)
	}
	if n, ok := p.Cardinality(); ok && v >= 0 && int(v) < n {
		return fmt.Sprint(p.At(int(v)))
	}
	return "–"
}

// newRow returns the row of a trial.
func newRow(a axes, t *record.Trial) *row {
	r := &row{
		number: t.Number, state: t.State, source: t.Source, value: math.NaN(), params: make([]float64, len(a)),
		staleness: t.Staleness, pending: t.Reasons.Pending, request: t.Request, made: t.Created, position: t.Ended,
		asked: at(t.Times.Asked), created: at(t.Times.Created), started: at(t.Times.Started), ended: at(t.Times.Ended),
		mean: math.NaN(), sd: math.NaN(),
	}
	if len(t.Values) > 0 {
		r.value = t.Values.First()
	}
	if t.Reasons.Mean != nil && t.Reasons.SD != nil {
		r.mean, r.sd = *t.Reasons.Mean, *t.Reasons.SD
	}
	for i := range a {
		r.params[i] = math.NaN()
		if raw, ok := t.Point[a[i].Name]; ok {
			r.params[i] = number(&a[i], raw)
		}
	}
	for i := range t.Attempts {
		o := &t.Attempts[i]
		if o.Worker == "" {
			continue
		}
		r.worker = o.Worker
		begun := o.Started
		if begun.IsZero() {
			begun = o.Claimed
		}
		r.attempts = append(r.attempts, span{worker: o.Worker, number: o.Number, claimed: at(begun), ended: at(o.Ended), state: o.State})
	}
	if last := t.Last(); last != nil && last.Failure != nil {
		r.failure = last.Failure.Reason
		if last.Failure.ExitCode != nil && r.failure == "exit" {
			r.failure = fmt.Sprintf("exit code %d", *last.Failure.ExitCode)
		}
	}
	return r
}

// completed reports whether the row has a final value.
func (r *row) completed() bool { return r.state == study.TrialCompleted && !math.IsNaN(r.value) }

// took returns how long the evaluation has run by then; 0 if it has not begun.
func (r *row) took(now moment) time.Duration {
	if r.ended == 0 {
		return now.minus(r.started)
	}
	return r.ended.minus(r.started)
}
