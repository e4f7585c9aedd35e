package diagnosis

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/diagnose"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate/transfer"
)

// Earlier says what an earlier study is worth to this one by now.
type Earlier struct {
	Study string `json:"study"`
	// Trials is how many of its trials this study has.
	Trials int `json:"trials"`
	// Agreement says how well the earlier study ranks this study's points: Spearman's correlation of its
	// predictions and their values. 1 is the same order, −1 the opposite one.
	Agreement float64 `json:"agreement"`
	// Weight is the mean weight of its prediction in this study's model, in standard deviations of the
	// outcomes: near 0 if it does not count.
	Weight float64 `json:"weight"`
}

// earlier says how much each earlier study counts; nil if there is none that has a place in the space.
func (e *examination) earlier(ctx context.Context) ([]Earlier, error) {
	if len(e.problem.Earlier) == 0 {
		return nil, nil
	}
	sources, _, err := transfer.Read(ctx, e.problem, e.encoding, nil)
	if err != nil || sources == nil {
		return nil, err
	}
	o := surrogate.DefaultOptions()
	o.Earlier = sources
	m, err := surrogate.Fit(ctx, surrogate.Observe(e.problem, e.encoding, o), o, nil, e.rand())
	if err != nil {
		return nil, err
	}
	predicted, weights := sources.Values(m.Data.X), m.GP.Weights()
	trials := map[string]int{}
	for _, from := range e.problem.Earlier {
		trials[from.Name] = len(from.Points)
	}
	list := make([]Earlier, len(sources))
	for s, source := range sources {
		agreement := diagnose.Spearman(mat.Col(nil, s, predicted), m.Data.Y)
		if math.IsNaN(agreement) { // it predicts the same everywhere
			agreement = 0
		}
		list[s] = Earlier{Study: source.Name, Trials: trials[source.Name], Agreement: agreement, Weight: weights[s]}
	}
	return list, nil
}

// alike is the least rank correlation of an earlier study that ranks points as this one does.
const alike = 0.3

// judgeEarlier says which earlier studies agree with this one.
func judgeEarlier(d *Diagnosis) (statement, evidence string) {
	var agree, oppose, rest, figures []string
	for _, e := range d.Earlier {
		switch {
		case e.Agreement >= alike:
			agree = append(agree, e.Study)
		case e.Agreement <= -alike:
			oppose = append(oppose, e.Study)
		default:
			rest = append(rest, e.Study)
		}
		figures = append(figures, fmt.Sprintf("%s: rank correlation %.2f, weight %.2f", e.Study, e.Agreement, e.Weight))
	}
	var sentences []string
	for _, part := range []struct {
		names []string
		says  string
	}{
		{agree, "Ranks points as this study does: %s."}, {oppose, "Ranks points upside down, and counts so: %s."},
		{rest, "Says little about this study: %s."},
	} {
		if part.names != nil {
			sentences = append(sentences, fmt.Sprintf(part.says, strings.Join(part.names, ", ")))
		}
	}
	return strings.Join(sentences, " "), strings.Join(figures, "; ") + "; " + trials(d)
}
