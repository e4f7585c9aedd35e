package diagnosis

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/api/view"
)

// Topic is a question that a diagnosis answers with exactly one finding.
type Topic string

// The topics, in the order of a diagnosis's findings.
const (
	TopicModel       Topic = "model"
	TopicNoise       Topic = "noise"
	TopicSpread      Topic = "spread"
	TopicTransform   Topic = "transform"
	TopicWarp        Topic = "warp"
	TopicAcquisition Topic = "acquisition"
	TopicParameters  Topic = "parameters"
	TopicObjectives  Topic = "objectives"
	TopicLimits      Topic = "limits"
	TopicTime        Topic = "time"
	TopicEarlier     Topic = "earlier studies"
	TopicMore        Topic = "more trials"
)

// Finding is the answer to one topic's question.
type Finding struct {
	Topic Topic `json:"topic"`
	// Judged is false where the data do not suffice for an answer; Statement then
	// says what is needed.
	Judged    bool   `json:"judged"`
	Statement string `json:"statement"`
	// Evidence holds the figures that the statement rests on, and the number of
	// trials that they come from.
	Evidence string `json:"evidence"`
}

// The thresholds of the statements.
const (
	usefulModel = 0.3  // least Diagnosis.Explained for a statement about the model's predictions
	bareNoise   = 0.01 // Noise.AtMost below which noise is negligible
	muchNoise   = 0.3  // Noise.Share above which it hides the parameters
	idle        = 0.02 // Importance.Total below which a parameter has hardly any effect
	strong      = 0.3  // Importance.Total from which a parameter matters most
	agreement   = 0.5  // least Pair.Top for acquisition functions that agree
)

// errWeakModel says that a finding needs a model that predicts better.
var errWeakModel = fmt.Errorf("this needs a model that explains at least %s of the variance of left-out trials", percent(usefulModel))

// gaps holds, by topic, why a diagnosis has no figures for it.
type gaps map[Topic]error

// topic is a question with the function that answers it where the figures are there.
type topic struct {
	name  Topic
	judge func(*Diagnosis) (statement, evidence string)
}

// topics are those of every study.
var topics = []topic{
	{TopicModel, judgeModel},
	{TopicNoise, judgeNoise},
	{TopicSpread, judgeSpread},
	{TopicTransform, judgeTransform},
	{TopicWarp, judgeWarp},
	{TopicAcquisition, judgeAcquisition},
	{TopicParameters, judgeParameters},
}

// findings returns the findings of a diagnosis, one a topic.
func findings(d *Diagnosis, missing gaps, topics []topic) []Finding {
	var list []Finding
	for _, topic := range topics {
		f := Finding{Topic: topic.name, Judged: true}
		if err := missing[topic.name]; err != nil {
			f.Judged, f.Statement, f.Evidence = false, "Not judged: "+err.Error()+".", trials(d)
			if errors.Is(err, errWeakModel) {
				f.Evidence = explained(d)
			}
		} else {
			f.Statement, f.Evidence = topic.judge(d)
		}
		list = append(list, f)
	}
	return list
}

// trials is the number of trials that a finding rests on.
func trials(d *Diagnosis) string { return fmt.Sprintf("%d trials", d.Used) }

func explained(d *Diagnosis) string {
	return fmt.Sprintf("%s of the variance of left-out trials explained; %s", percent(math.Max(0, d.Explained)), trials(d))
}

func judgeModel(d *Diagnosis) (statement, evidence string) {
	if d.Explained < usefulModel {
		return "The model predicts unseen trials poorly: run more trials, or search fewer parameters.", explained(d)
	}
	return "The model predicts unseen trials well enough to judge by it.", explained(d)
}

func judgeNoise(d *Diagnosis) (statement, evidence string) {
	n := d.Noise
	evidence = fmt.Sprintf("noise is %s of the variance", percent(n.Share))
	switch {
	case n.AtMost > n.Share && n.Share < bareNoise:
		evidence = fmt.Sprintf("noise is up to %s of the variance", percent(n.AtMost))
	case n.AtMost > n.Share:
		evidence = fmt.Sprintf("noise is %s to %s of the variance", percent(n.Share), percent(n.AtMost))
	}
	if n.Replicates.enough() {
		evidence += fmt.Sprintf(", measured by %d evaluations of %d points", n.Replicates.Evaluations, n.Replicates.Points)
	}
	evidence += "; " + trials(d)
	switch {
	case n.Front && (n.AtMost < bareNoise || n.Replicates.enough() && n.Replicates.SD == 0):
		return "Noise is negligible: rely on the front as it is.", evidence
	case n.Replicates.enough() && n.Replicates.SD == 0:
		return "Repeated evaluations gave identical values: rely on `best`.", evidence
	case n.AtMost < bareNoise:
		return "Noise is negligible: rely on `best`.", evidence
	}
	statement = "Evaluations are noisy: "
	if n.AtMost > 2*n.Share {
		statement = "How noisy evaluations are is uncertain until a few points are evaluated again: "
	}
	switch {
	case n.Front:
		statement += "the front of the values is partly luck: rely on the recommended front."
	case n.Recommended == nil:
		statement += fmt.Sprintf("`best` (trial %d) is partly luck, and `%s` recommends no trial, because it has no model.", n.Best, d.Algorithm)
	case *n.Recommended == n.Best:
		statement += fmt.Sprintf("rely on `recommended` rather than `best` (both are trial %d).", n.Best)
	default:
		statement += fmt.Sprintf("rely on `recommended` rather than `best` (trial %d, not %d).", *n.Recommended, n.Best)
	}
	if n.Share > muchNoise {
		statement += " Report the mean of several evaluations in each trial to make the parameters' effects visible."
	}
	return statement, evidence
}

func judgeSpread(d *Diagnosis) (statement, evidence string) {
	h := d.Heteroscedasticity
	what := "noise"
	evidence = fmt.Sprintf("p = %s at %d points with %d evaluations", figure(h.Raw.least()), h.Raw.Groups, h.Raw.Values)
	if h.Groups == ByResiduals {
		what = "spread of the model's errors"
		evidence = fmt.Sprintf("p = %s in %d groups of left-out trials; %s", figure(h.Raw.least()), h.Raw.Groups, trials(d))
	}
	if h.Raw.Differs() {
		return fmt.Sprintf("The %s depends on the value.", what), evidence
	}
	return fmt.Sprintf("The %s shows no dependence on the value.", what), evidence
}

// judgeTransform weighs all that tells of the output transform: what it is worth to
// the model, and what it does to an uneven spread.
func judgeTransform(d *Diagnosis) (statement, evidence string) {
	evidence = d.Transform.evidence(d)
	uneven, evened := false, false
	if h := d.Heteroscedasticity; h != nil && h.Raw.Differs() && h.Transformed != nil {
		evened = !h.Transformed.Differs()
		uneven = !evened
		evidence = fmt.Sprintf("p for an even spread: %s raw, %s transformed; %s", figure(h.Raw.least()), figure(h.Transformed.least()), evidence)
	}
	switch {
	case d.Transform.Effect == Hurts:
		statement = "The output transform makes predictions worse: use `transform: false`."
	case d.Transform.Effect == Helps:
		statement = "The output transform improves predictions: use `transform: true`."
	case evened:
		statement = "The output transform evens out the spread: use `transform: true`."
	default:
		statement = "The output transform makes no clear difference: leave `transform` as it is."
	}
	if uneven {
		statement += " The spread stays uneven: optimising another form of the metric, such as its log, may be easier."
	}
	return statement, evidence
}

func judgeWarp(d *Diagnosis) (statement, evidence string) {
	evidence = d.Warp.evidence(d)
	switch d.Warp.Effect {
	case Helps:
		return "Input warping improves predictions: use `warp: true`.", evidence
	case Hurts:
		return "Input warping makes predictions worse: use `warp: false`.", evidence
	default:
		return "Input warping makes no clear difference: leave `warp` as it is.", evidence
	}
}

// evidence is the figures that decide a gain's effect.
func (g *Gain) evidence(d *Diagnosis) string {
	return fmt.Sprintf("%+.3f ± %.3f nats for a left-out trial, %+.1f in all; %s", g.Predictive, g.SE, g.Evidence, trials(d))
}

// judgeAcquisition decides by the best points alone: a search evaluates no others.
func judgeAcquisition(d *Diagnosis) (statement, evidence string) {
	least := slices.MinFunc(d.Conflict.Pairs, func(a, b Pair) int { return cmp.Compare(a.Top, b.Top) })
	evidence = fmt.Sprintf("%s and %s share %s of their best %s of %d points; %s",
		least.A, least.B, percent(least.Top), percent(topShare), d.Conflict.Points, trials(d))
	if least.Top >= agreement {
		return "Acquisition functions agree about the best points: one of them is enough, such as `acquisition: logei`.", evidence
	}
	return "Acquisition functions disagree about the best points: `acquisition: mace`, which trades them off, is worth a try.", evidence
}

func judgeParameters(d *Diagnosis) (statement, evidence string) {
	var high, low, unseen []string
	figures := make([]string, len(d.Importance))
	for i, p := range d.Importance {
		figures[i] = fmt.Sprintf("%s %.0f%%", p.Parameter, 100*p.Total)
		switch {
		case p.Active < MinCompleted:
			unseen = append(unseen, fmt.Sprintf("%s (%d)", p.Parameter, p.Active))
		case p.Total >= strong:
			high = append(high, p.Parameter)
		case p.Total < idle:
			low = append(low, p.Parameter)
		}
	}
	var sentences []string
	if len(high) > 0 {
		sentences = append(sentences, fmt.Sprintf("Most important: %s.", strings.Join(high, ", ")))
	}
	if len(low) > 0 {
		sentences = append(sentences, fmt.Sprintf("Hardly any effect within the range (fix, or widen the range): %s.", strings.Join(low, ", ")))
	}
	if len(high)+len(low) == 0 {
		sentences = append(sentences, "No parameter stands out, and none is without effect.")
	}
	if len(unseen) > 0 {
		sentences = append(sentences, fmt.Sprintf("Not judged, as active in fewer than %d trials: %s.", MinCompleted, strings.Join(unseen, ", ")))
	}
	return strings.Join(sentences, " "), "total shares: " + strings.Join(figures, ", ") + "; " + trials(d)
}

// percent formats a share in percent with two digits.
func percent(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 0.1:
		return "less than 0.1%"
	case p < 9.95 && p != math.Trunc(p):
		return fmt.Sprintf("%.1f%%", p)
	default:
		return fmt.Sprintf("%.0f%%", p)
	}
}

// figure formats a number with three digits.
func figure(v float64) string { return view.Short(v, 3) }
