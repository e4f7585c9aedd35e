// Package diagnosis examines the observations of a study: how noisy the objective
// is and whether the noise is even, what the transforms of the model are worth,
// whether acquisition functions conflict, and which parameters matter. It applies
// the analysis of section 3 of HEBO (Cowen-Rivers et al. 2022) to one study. Of several
// objectives it says which of them conflict, and of limits what they cost.
package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/hebo"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

// MinCompleted is the number of completed trials that a diagnosis needs. A
// conditional parameter is judged after as many trials in which it was active.
const MinCompleted = 20

// perParameter is the number of completed trials for each parameter that a ranking
// of the parameters needs.
const perParameter = 3

// ErrTooLittle says that a study has too few trials, or trials too much alike, for
// a diagnosis.
var ErrTooLittle = errors.New("not enough data to diagnose")

// Diagnosis is what an examination says of a study, as scripts see it. A section is nil where the observations
// do not suffice for it; the finding of its topic then says what is needed.
type Diagnosis struct {
	Study string `json:"study"`
	// Algorithm is the name of its algorithm.
	Algorithm string `json:"algorithm"`
	// Completed is how many trials completed, Used how many of them the model was
	// fitted to, LeftOut how many ended without a value.
	Completed int `json:"completed"`
	Used      int `json:"used"`
	LeftOut   int `json:"leftOut"`
	// Explained is the share of the variance of outcomes, as the model sees them,
	// that it predicts for outcomes that it was not shown (leave-one-out); below
	// 0 where their mean would predict better.
	Explained          float64             `json:"explained"`
	Noise              *Noise              `json:"noise"`
	Heteroscedasticity *Heteroscedasticity `json:"heteroscedasticity"`
	Transform          *Gain               `json:"transform"`
	Warp               *Gain               `json:"warp"`
	Conflict           *Conflict           `json:"conflict"`
	Importance         []Importance        `json:"importance"`
	// Objectives compares each pair of several objectives, and Limits says what each limit
	// costs. Studies with one objective and without limits have neither.
	Objectives []Tradeoff    `json:"objectives,omitempty"`
	Limits     []LimitEffect `json:"limits,omitempty"`
	// Durations says how long trials take; nil where that is not known, and for trials of less than a second.
	Durations *Durations `json:"durations,omitempty"`
	// Earlier says what each earlier study is worth that the study learns from; nil if it learns from none.
	Earlier []Earlier `json:"earlier,omitempty"`
	// More is what more trials are expected to gain, as far as the algorithm tells.
	More *optimizer.Gain `json:"more,omitempty"`
	// EarlyStopping is what each rule would have saved; nil without enough curves.
	EarlyStopping []Replay `json:"earlyStopping"`
	// Judged is what a model of curves says of the trials; nil without enough of them.
	Judged *Judged `json:"judged,omitempty"`
	// Findings has one entry for each Topic, in their order. TopicObjectives is only there with
	// several objectives, TopicLimits with limits, TopicTime where trials take seconds, TopicEarlier where the study learns
	// from earlier ones, and TopicMore where the algorithm tells what more trials gain.
	Findings []Finding `json:"findings"`
}

// diagnose judges what the examination found.
func (e *examination) diagnose(ctx context.Context, s *study.Study, p *optimizer.Problem, took []time.Duration) (*Diagnosis, error) {
	d := &Diagnosis{
		Study: s.Metadata.Name, Algorithm: s.Spec.Algorithm.Name, Completed: len(e.problem.Observations), Used: len(e.used.Data.Y),
		LeftOut:   len(p.Observations) - len(e.problem.Observations),
		Explained: e.explained(),
	}
	missing := gaps{}
	d.Noise, missing[TopicNoise] = e.noise()
	d.Transform, missing[TopicTransform] = e.gain(e.full, e.noTransform, e.noWarp, e.plain)
	d.Warp, missing[TopicWarp] = e.gain(e.full, e.noWarp, e.noTransform, e.plain)
	d.Heteroscedasticity, missing[TopicSpread] = e.heteroscedasticity()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.Conflict, missing[TopicAcquisition] = e.conflict()
	d.Importance, missing[TopicParameters] = e.importance()
	topics := topics
	if e.problem.Objectives != nil {
		d.Objectives, missing[TopicObjectives] = e.tradeoffs()
		topics = append(slices.Clip(topics), topic{TopicObjectives, judgeObjectives})
	}
	if len(e.problem.Limits) > 0 {
		d.Limits, missing[TopicLimits] = e.limits()
		topics = append(slices.Clip(topics), topic{TopicLimits, judgeLimits})
	}
	if d.Durations, missing[TopicTime] = e.durations(ctx, p, took); d.Durations != nil || missing[TopicTime] != nil {
		topics = append(slices.Clip(topics), topic{TopicTime, judgeDurations})
	}
	if d.Earlier, missing[TopicEarlier] = e.earlier(ctx); d.Earlier != nil || missing[TopicEarlier] != nil {
		topics = append(slices.Clip(topics), topic{TopicEarlier, judgeEarlier})
	}
	var err error
	if d.More, err = more(ctx, &s.Spec, p); err != nil {
		return nil, err
	} else if d.More != nil {
		topics = append(slices.Clip(topics), topic{TopicMore, judgeMore})
	}
	d.Findings = findings(d, missing, topics)
	return d, ctx.Err()
}

// examination is a study with the models that were fitted to it.
type examination struct {
	problem  *optimizer.Problem // completed observations only
	encoding *optimizer.Encoding
	// used is the optimiser's default model. The others are fitted to the values as
	// they are: full has both transforms, noWarp and noTransform lack one, and plain
	// has neither.
	used, full, noWarp, noTransform, plain *surrogate.Model
	recommended                            *int   // trial
	front                                  bool   // is recommended
	metric                                 string // of the first objective
	// outlook has the models of several objectives and of limits; nil without them.
	outlook *hebo.Outlook
	// clock is the examination of the logarithms of the trials' times; nil if these do not matter, or no model was fitted.
	clock *examination
	// places are points all over the space, in the unit cube.
	places *mat.Dense
}

func newExamination(ctx context.Context, s *study.Spec, p *optimizer.Problem) (*examination, error) {
	completed := *p
	completed.Observations, completed.Pending = nil, nil
	different := false
	for _, o := range p.Observations {
		if o.Outcome != optimizer.OutcomeCompleted {
			continue
		}
		completed.Observations = append(completed.Observations, o)
		different = different || o.Values.First() != completed.Observations[0].Values.First()
	}
	e := &examination{problem: &completed, encoding: optimizer.NewEncoding(p.Space), metric: s.FirstObjective().Metric}
	switch n := len(completed.Observations); {
	case n < MinCompleted:
		return nil, fmt.Errorf("%w: completed trials: %d, at least %d are needed", ErrTooLittle, n, MinCompleted)
	case !different:
		return nil, fmt.Errorf("%w: all %d completed trials have the value %g", ErrTooLittle, n, completed.Observations[0].Values.First())
	case e.encoding.Dim() == 0:
		return nil, fmt.Errorf("%w: no parameter has more than one value", ErrTooLittle)
	}
	if err := e.fitAll(ctx); err != nil {
		return nil, err
	}
	err := e.fitOutlook(ctx, s.Algorithm)
	if err != nil {
		return nil, err
	}
	if e.recommended, e.front, err = recommend(ctx, s.Algorithm, p); err != nil {
		return nil, err
	}
	if e.places, err = survey(&completed, e.encoding); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLittle, err)
	}
	if e.places == nil { // narrow constraints, which no surveyed point satisfies
		e.places = e.used.Data.X
	}
	return e, nil
}

// fitAll fits the models.
func (e *examination) fitAll(ctx context.Context) error {
	var err error
	if e.used, err = e.fitUsed(ctx); err == nil {
		for _, m := range []struct {
			to              **surrogate.Model
			transform, warp bool
		}{{&e.plain, false, false}, {&e.noWarp, true, false}, {&e.noTransform, false, true}, {&e.full, true, true}} {
			if *m.to, err = e.fit(ctx, m.transform, m.warp); err != nil {
				break
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("diagnose: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("%w: no model can be fitted: %w", ErrTooLittle, err)
	}
	return nil
}
