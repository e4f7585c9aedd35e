package diagnosis

import (
	"errors"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
	"github.com/fantasia-hpo/fantasia/study"
)

// Effect is what a part of the model does for its fit.
type Effect string

// The effects of a part of the model.
const (
	Helps Effect = "helps"
	Hurts Effect = "hurts"
	// Neither means that the observations show no difference.
	Neither Effect = "neither"
)

// Gain is the improvement that a part of the model brings, in nats of log density of
// the values in their own units.
type Gain struct {
	// Evidence is the gain in log marginal likelihood over the same model without
	// the part, and PerObservation that gain divided by the number of observations.
	// Alone is the gain where the model has no other transform.
	Evidence       float64 `json:"evidence"`
	PerObservation float64 `json:"perObservation"`
	Alone          float64 `json:"alone"`
	// Predictive is the mean gain in the log density of an observation that is
	// predicted from all the others, SE its standard error: unlike a likelihood,
	// it gains nothing by fitting noise.
	Predictive float64 `json:"predictive"`
	SE         float64 `json:"se"`
	// PredictiveAlone is that gain where the model has no other transform, and SEAlone its
	// standard error.
	PredictiveAlone float64 `json:"predictiveAlone"`
	SEAlone         float64 `json:"seAlone"`
	Effect          Effect  `json:"effect"`
}

// The bounds of effects: a gain counts where it is beyond two standard errors in
// predictive density, and strong evidence in marginal likelihood (a Bayes factor
// of 20: Kass and Raftery 1995, section 3.2).
const (
	certainErrors  = 2
	strongEvidence = 3 // log 20
)

// gain compares a model with one that lacks a part, and a model that has only this
// part with one that has none. It fails where a density is not finite.
func (e *examination) gain(with, without, alone, none *surrogate.Model) (*Gain, error) {
	n := float64(len(with.Data.Y))
	g := &Gain{
		Evidence: with.LogEvidence() - without.LogEvidence(),
		Alone:    alone.LogEvidence() - none.LogEvidence(),
		Effect:   Neither,
	}
	g.PerObservation = g.Evidence / n
	g.Predictive, g.SE = e.predicts(with, without)
	g.PredictiveAlone, g.SEAlone = e.predicts(alone, none)
	if !study.Finite(g.Evidence, g.Alone, g.Predictive, g.SE, g.PredictiveAlone, g.SEAlone) {
		return nil, errors.New("the values have no finite density under the model")
	}
	switch certain := certainErrors * g.SE; {
	case g.Predictive > certain && g.Evidence > strongEvidence:
		g.Effect = Helps
	case g.Predictive < -certain && g.Evidence < -strongEvidence:
		g.Effect = Hurts
	}
	return g, nil
}

// predicts returns by how much a model predicts an observation better than another, in the mean,
// and its standard error.
func (e *examination) predicts(model, other *surrogate.Model) (mean, se float64) {
	differences := e.predictive(model)
	floats.Sub(differences, e.predictive(other))
	mean, sd := stat.MeanStdDev(differences, nil)
	return mean, stat.StdErr(sd, float64(len(differences)))
}
