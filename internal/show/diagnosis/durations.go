package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Durations says how long trials take, and which parameters decide that. All times are seconds for which
// programs ran.
type Durations struct {
	// Trials is how many completed trials it rests on.
	Trials int `json:"trials"`
	// Low, Median and High are times within which a tenth, half and nine tenths of the trials ended.
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
	// Explained is the share of the variance of the times' logarithms that a model predicts for trials that
	// it was not shown, as in Diagnosis.
	Explained float64 `json:"explained"`
	// Importance ranks the parameters by their share of that model's variance; nil if it predicts too little.
	Importance []Importance `json:"importance"`
	// Slow says how trials differ along the parameters that decide, those with a total share of 30% or more.
	Slow []Slow `json:"slow,omitempty"`
	// Faster is the best of the trials that took at most half as long as the best one; nil if there is none,
	// or if there are several objectives.
	Faster *Faster `json:"faster,omitempty"`
	// Half is what half the time of the best trial is expected to cost; nil if that is not known, as NoHalf says.
	Half   *Half  `json:"half,omitempty"`
	NoHalf string `json:"noHalf,omitempty"`
}

// Slow says where along a parameter trials take longest, and where they are quickest, on average over all other parameters.
type Slow struct {
	Parameter string `json:"parameter"`
	Slowest   any    `json:"slowest"`
	Quickest  any    `json:"quickest"`
	// Times is how many times as long trials take at Slowest as at Quickest.
	Times float64 `json:"times"`
}

// Faster compares the best trial with one that took at most half as long.
type Faster struct {
	Best        int     `json:"best"`
	BestValue   float64 `json:"bestValue"`
	BestSeconds float64 `json:"bestSeconds"`
	Trial       int     `json:"trial"`
	Value       float64 `json:"value"`
	Seconds     float64 `json:"seconds"`
}

// worthTelling is the median time, in seconds, from which people wait for trials.
const worthTelling = 1

// durations examines how long the completed observations of a problem took; took has a time for each
// observation, 0 where it is not known. It returns nil without an error if trials are too short to matter.
// The model is a Gaussian process on the logarithm of the time, since what makes a trial slower multiplies
// its time. The error says what is missing.
func (e *examination) durations(ctx context.Context, p *optimizer.Problem, took []time.Duration) (*Durations, error) {
	times := &optimizer.Problem{Space: p.Space, Direction: study.Minimize, MaxTrials: p.MaxTrials, Seed: p.Seed, First: p.First}
	var seconds []float64
	of := map[int]float64{} // by trial
	for i, o := range p.Observations {
		if o.Outcome != optimizer.OutcomeCompleted || i >= len(took) || took[i] <= 0 {
			continue
		}
		s := took[i].Seconds()
		seconds, of[o.Trial] = append(seconds, s), s
		o.Values, o.Excess, o.Early = study.Values{math.Log(s)}, nil, nil
		times.Observations = append(times.Observations, o)
	}
	slices.Sort(seconds)
	quantile := func(share float64) float64 { return stat.Quantile(share, stat.Empirical, seconds, nil) }
	if len(seconds) == 0 || quantile(0.5) < worthTelling {
		return nil, nil
	}
	if len(seconds) < MinCompleted {
		return nil, fmt.Errorf("this needs %d completed trials whose time is known, and there are %d", MinCompleted, len(seconds))
	}
	d := &Durations{Trials: len(seconds), Low: quantile(0.1), Median: quantile(0.5), High: quantile(0.9)}
	if p.Objectives == nil {
		d.Faster = faster(p, of)
	}
	if seconds[0] == seconds[len(seconds)-1] {
		return d, nil
	}
	clock := &examination{problem: times, encoding: e.encoding, places: e.places}
	var err error
	if clock.used, err = clock.fit(ctx, false, false); err != nil {
		return nil, fmt.Errorf("no model of the time can be fitted: %w", err)
	}
	d.Explained = clock.explained()
	if d.Importance, err = clock.importance(); err != nil && !errors.Is(err, errWeakModel) {
		return nil, err
	}
	e.clock = clock
	d.Slow = clock.slow(d.Importance)
	if d.Half, err = e.half(ctx, d); errors.Is(err, errNoHalf) {
		d.NoHalf = strings.TrimPrefix(err.Error(), errNoHalf.Error()+": ")
	} else if err != nil {
		return nil, err
	}
	return d, nil
}

// slow returns how the times of an examination differ along the parameters that decide.
func (e *examination) slow(ranked []Importance) (list []Slow) {
	m := &Model{e}
	for _, p := range ranked {
		at, expected := m.Along(p.Parameter)
		if p.Total < strong || len(at) == 0 {
			continue
		}
		least, most := 0, 0
		for i, x := range expected {
			if x.Median < expected[least].Median {
				least = i
			}
			if x.Median > expected[most].Median {
				most = i
			}
		}
		list = append(list, Slow{
			p.Parameter, e.valueAt(p.Parameter, at[most]), e.valueAt(p.Parameter, at[least]),
			math.Exp(expected[most].Median - expected[least].Median),
		})
	}
	return list
}

// valueAt returns the value of a parameter at a place on the axis that Along returns.
func (e *examination) valueAt(parameter string, at float64) any {
	for _, c := range e.encoding.Columns() {
		if c.Parameter.Name == parameter && c.Parameter.Type != study.Float && c.Parameter.Type != study.Int {
			return c.Parameter.At(int(at))
		}
	}
	return at
}

// faster compares the best observation within all limits with the best of those that took at most half of
// its time.
func faster(p *optimizer.Problem, seconds map[int]float64) *Faster {
	best := func(most float64) *optimizer.Observation {
		var found *optimizer.Observation
		for i := range p.Observations {
			o := &p.Observations[i]
			if s, ok := seconds[o.Trial]; ok && s <= most && o.Within() &&
				(found == nil || p.Direction.Cost(o.Values.First()) < p.Direction.Cost(found.Values.First())) {
				found = o
			}
		}
		return found
	}
	first := best(math.Inf(1))
	if first == nil {
		return nil
	}
	second := best(seconds[first.Trial] / 2)
	if second == nil {
		return nil
	}
	return &Faster{
		Best: first.Trial, BestValue: first.Values.First(), BestSeconds: seconds[first.Trial],
		Trial: second.Trial, Value: second.Values.First(), Seconds: seconds[second.Trial],
	}
}

func judgeDurations(all *Diagnosis) (statement, evidence string) {
	d := all.Durations
	evidence = fmt.Sprintf("eight of ten trials took %s to %s; %s of the variance of left-out trials' times explained; %d trials",
		inSeconds(d.Low), inSeconds(d.High), percent(math.Max(0, d.Explained)), d.Trials)
	var deciding []string
	for _, p := range d.Importance {
		if p.Total < strong {
			continue
		}
		text := percent(p.Total)
		for _, s := range d.Slow {
			if s.Parameter == p.Parameter {
				text += fmt.Sprintf("; %s times as long at %s as at %s", figure2(s.Times), valueText(s.Slowest), valueText(s.Quickest))
			}
		}
		deciding = append(deciding, fmt.Sprintf("%s (%s)", p.Parameter, text))
	}
	switch {
	case len(d.Importance) == 0:
		statement = fmt.Sprintf("Trials take %s, and the parameters hardly decide how long.", inSeconds(d.Median))
	case len(deciding) == 0:
		statement = fmt.Sprintf("Trials take %s; no parameter alone decides how long.", inSeconds(d.Median))
	default:
		statement = fmt.Sprintf("Trials take %s; what decides how long: %s.", inSeconds(d.Median), strings.Join(deciding, ", "))
	}
	if f := d.Faster; f != nil {
		statement += fmt.Sprintf(" The best trial (%d) took %s. Of those that took at most half of that, trial %d is the best: "+
			"%s instead of %s.", f.Best, inSeconds(f.BestSeconds), f.Trial, figure(f.Value), figure(f.BestValue))
	}
	switch h := d.Half; {
	case h != nil:
		statement += fmt.Sprintf(" With at most half of the best trial's time, the model expects %s at best (%s to %s), instead of %s.",
			figure(h.Value), figure(h.Low), figure(h.High), figure(h.Instead))
	case d.NoHalf != "":
		statement += " What half the time would cost is not known: " + d.NoHalf + "."
	}
	return statement, evidence
}

// figure2 formats a number with two digits.
func figure2(v float64) string { return view.Short(v, 2) }

// valueText formats a parameter's value.
func valueText(v any) string {
	if number, ok := v.(float64); ok {
		return figure(number)
	}
	return study.Format(v)
}

// inSeconds formats a time: below ten seconds by tenths, above by seconds.
func inSeconds(s float64) string {
	step := time.Second
	if s < 10 {
		step /= 10
	}
	return time.Duration(s * float64(time.Second)).Round(step).String()
}
