// Package pruner decides which running trials to stop because their curves are worse
// than those of others. It does no I/O and has no clock and no random numbers: the
// same reports give the same verdicts.
package pruner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
)

// Pruner decides which running trials to stop. Its state depends only on what it was
// told about each trial, not on the order between trials, so that a new leader can tell
// it all curves again, one trial after the other. A trial's memory is bounded: up to
// MaxPoints points of its curve. Not safe for concurrent use.
type Pruner interface {
	// Report adds that a trial reported a cost at a step, and says whether to stop the
	// trial. Less cost is better: the caller has applied the direction. A cost that is not
	// finite is worse than any other: the trial has diverged. Reports whose
	// step is not beyond the trial's last one are ignored. A trial that has ended is
	// never to be stopped.
	Report(trial int, step int64, cost float64) Verdict
	// End says that a trial has ended. A completed trial ran to its end with this final
	// cost, or NaN if it has none. Only the first End of a trial counts.
	End(trial int, completed bool, cost float64)
	// LastStep returns the step at which a trial has run to its end: the setting maxSteps or, without
	// one, the step at which the curves of all completed trials end. It is 0 if they end at different
	// steps, as those of programs that stop by themselves, or if fewer than two are known.
	LastStep() int64
	// Length returns the last step of a trial that runs to its end, as far as it is known: the setting
	// maxSteps or, without one, the last step of the longest complete curve; 0 if there is none.
	Length() int64
	// Curves returns what all trials have reported, by number, for a decision that Verdict.Ask asks for.
	// What it returns does not change.
	Curves() []Curve
	// Ends returns the completed trials with a curve, by number, and how many of them had a better best report
	// than cost. same says that each trial has ended with its best or its last report: then reports and
	// results are values of the same kind.
	Ends(cost float64) (completed []int, better int, same bool)
}

// Verdict is the answer to a report.
type Verdict struct {
	Stop bool
	// Ask says that a model is to decide whether the trial goes on: see package judge.
	Ask bool
	// Reason says why to stop, in words for people and in the metric's own values.
	Reason string
	// Beside are the completed trials that had a value at the step of a stopped one, by number, and Better is
	// how many of them had a better one there.
	Beside []int
	Better int
}

// Entry is a pruner that a study file can name.
type Entry struct {
	Name string
	// Description explains in a sentence which trials the pruner stops.
	Description string
	// Settings lists the settings that earlyStopping.settings may hold.
	Settings setting.Set

	rule func(setting.Values, study.Direction) (rule, error)
}

// rule is what one kind of pruner does; the limits around it are the same for all.
type rule interface {
	// seen adds the last point of a trial's curve.
	seen(h *history)
	// ended adds that a trial has ended.
	ended(h *history)
	// judge says why to stop a running trial whose last point was just seen; "" if it
	// should go on.
	judge(h *history) string
}

// asks is a rule whose decisions need a model.
type asks interface {
	// asks reports whether a running trial whose last point was just seen is to be judged, of which last is
	// the last step.
	asks(h *history, last int64) bool
}

// Entries returns all pruners.
func Entries() []Entry {
	return []Entry{ashaEntry(), medianEntry(), modelEntry(), percentileEntry(), patientEntry(), thresholdEntry(), wilcoxonEntry()}
}

// Names returns the names of all pruners.
func Names() []string {
	var names []string
	for _, e := range Entries() {
		names = append(names, e.Name)
	}
	return names
}

// New returns a pruner for a metric that is minimised. See NewFor.
func New(spec study.EarlyStopping) (Pruner, error) { return NewFor(spec, study.Minimize) }

// NewFor returns a pruner for a metric with a direction. The direction is only used for
// settings and reasons, which are in the metric's own values: the caller of Report
// applies it. The error names the field, its value and what would be accepted; for
// settings it joins a *setting.Error for each wrong one.
func NewFor(spec study.EarlyStopping, direction study.Direction) (Pruner, error) {
	all := Entries()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == spec.Name })
	if i < 0 {
		return nil, fmt.Errorf("earlyStopping.name %q is unknown; want one of %s", spec.Name, strings.Join(Names(), ", "))
	}
	values, err := all[i].Settings.Parse(spec.Settings)
	if err != nil {
		return nil, err
	}
	r, err := all[i].rule(values, direction)
	if err != nil {
		return nil, err
	}
	return limit(r, values)
}
