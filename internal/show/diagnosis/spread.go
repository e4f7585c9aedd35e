package diagnosis

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/diagnose"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
)

// Grouping is the kind of groups whose spreads are compared.
type Grouping string

// The groupings.
const (
	// ByReplicates has a group for each point that was evaluated at least
	// minReplicates times, as the paper does.
	ByReplicates Grouping = "replicates"
	// ByResiduals has groups of the model's leave-one-out errors, in units of the
	// standard deviation that the model expects of them, split at quantiles of the
	// values that it predicts. They differ where the noise changes with the value,
	// but also where the function is rougher among some values than among others.
	ByResiduals Grouping = "residuals"
)

// The sizes of groups. With three values a group, a test detects only large
// differences; with two it detects none, as both lie equally far from their median.
const (
	minReplicates = 3
	minResiduals  = 5
	maxGroups     = 4
)

// Significant is the P below which a test counts as having found a difference.
const Significant = 0.05

// Heteroscedasticity holds tests of whether values spread equally everywhere.
type Heteroscedasticity struct {
	Groups Grouping `json:"groups"`
	// Raw tests the values as they are, Transformed those after the output
	// transform; it is nil where that leaves no test.
	Raw         *Spread `json:"raw"`
	Transformed *Spread `json:"transformed"`
}

// Spread is a comparison of the spreads of groups.
type Spread struct {
	Groups int `json:"groups"`
	Values int `json:"values"`
	// Levene is his test with distances from medians (Brown and Forsythe).
	Levene         diagnose.Test `json:"levene"`
	FlignerKilleen diagnose.Test `json:"flignerKilleen"`
	// Ratio is the largest standard deviation of a group over the smallest; nil
	// where one is 0.
	Ratio *float64 `json:"ratio"`
}

// Differs reports whether either test finds a difference.
func (s *Spread) Differs() bool { return s.least() < Significant }

// least is the smaller P of the two tests.
func (s *Spread) least() float64 { return min(s.Levene.P, s.FlignerKilleen.P) }

// heteroscedasticity tests whether values spread equally everywhere. The error
// says why there is no test.
func (e *examination) heteroscedasticity() (*Heteroscedasticity, error) {
	h := &Heteroscedasticity{Groups: ByReplicates}
	raw := e.repeated(minReplicates, e.noTransform.Data.Y)
	transformed := e.repeated(minReplicates, e.full.Data.Y)
	var err error
	// Replicates come first: their spread is noise, whatever the model makes of the objective.
	if len(raw) >= 2 {
		h.Raw, err = compare(raw)
	}
	if h.Raw == nil {
		if e.explained() < usefulModel {
			return nil, fmt.Errorf("%w, or 2 points evaluated %d times", errWeakModel, minReplicates)
		}
		h.Groups = ByResiduals
		raw, transformed = residuals(e.noTransform), residuals(e.full)
		h.Raw, err = compare(raw)
	}
	if err != nil {
		return nil, errors.New("the values hardly vary")
	}
	h.Transformed, _ = compare(transformed) // nil where there is no test
	return h, nil
}

// residuals returns a model's leave-one-out errors in units of their expected
// standard deviations, split at quantiles of the predictions.
func residuals(m *surrogate.Model) [][]float64 {
	residual, variance := m.GP.LeaveOneOut()
	predicted := func(i int) float64 { return m.Data.Y[i] - residual[i] }
	order := indices.Sorted(len(residual), func(a, b int) int { return cmp.Compare(predicted(a), predicted(b)) })
	groups := make([][]float64, min(maxGroups, max(2, len(order)/(2*minResiduals))))
	for place, i := range order {
		g := place * len(groups) / len(order)
		groups[g] = append(groups[g], residual[i]/math.Sqrt(variance[i]))
	}
	return groups
}

// compare tests groups by two tests, of which Conover, Johnson and Johnson (1981) found that they seldom
// report a difference that there is not, also for values that are not normal.
func compare(groups [][]float64) (*Spread, error) {
	levene, err := diagnose.Levene(groups)
	if err != nil {
		return nil, err
	}
	fligner, err := diagnose.FlignerKilleen(groups)
	if err != nil {
		return nil, err
	}
	s := &Spread{Groups: len(groups), Levene: levene, FlignerKilleen: fligner}
	least, most := math.Inf(1), 0.0
	for _, g := range groups {
		s.Values += len(g)
		sd := stat.StdDev(g, nil)
		least, most = min(least, sd), max(most, sd)
	}
	if ratio := most / least; study.Finite(ratio) {
		s.Ratio = &ratio
	}
	if !study.Finite(s.Levene.Statistic, s.Levene.P, s.FlignerKilleen.Statistic, s.FlignerKilleen.P) {
		return nil, diagnose.ErrGroups
	}
	return s, nil
}
