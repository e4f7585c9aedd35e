package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Half says what value would be lost if trials took at most half the time of the best one. Two models are asked, one of the time
// and one of the value. Of all points that are expected to be so quick, it has the one with the best expected value.
type Half struct {
	// Value is expected, and lies between Low and High with 95%; Instead is expected at the best trial's point.
	Value   float64 `json:"value"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Instead float64 `json:"instead"`
	// Seconds is expected at the point, and InsteadSeconds at the best trial's.
	Seconds        float64        `json:"seconds"`
	InsteadSeconds float64        `json:"insteadSeconds"`
	Parameters     map[string]any `json:"parameters"`
}

// errNoHalf says that what half the time would cost is not known.
var errNoHalf = errors.New("no half")

const (
	// The search for the best quick point begins at the surveyed places and the trials' points. Then, in so many rounds, it tries
	// some points around each of the best ones, nearer in each round.
	halfRounds, halfAround, halfKept = 5, 60, 5
	halfNear                         = 0.2
)

// quick is a place with what is expected there: the outcome as the model sees it, and the logarithm of the time.
type quick struct {
	x             []float64
	outcome, time float64
}

// half says what half the time would cost. The error wraps errNoHalf if that is not known.
func (e *examination) half(ctx context.Context, d *Durations) (*Half, error) {
	switch {
	case e.problem.Objectives != nil || len(e.problem.Limits) > 0:
		return nil, fmt.Errorf("%w: there are several objectives or limits", errNoHalf)
	case d.Explained < usefulModel:
		return nil, fmt.Errorf("%w: the model predicts the time of unseen trials poorly", errNoHalf)
	case e.explained() < usefulModel:
		return nil, fmt.Errorf("%w: the model predicts the values of unseen trials poorly", errNoHalf)
	}
	best := e.problem.Best()
	here := e.expect([][]float64{e.encoding.Encode(best.Point)})[0]
	most := here.time - math.Ln2
	rows, rng := e.rowsOf(e.places), e.rand()
	rows = append(rows, e.rowsOf(e.used.Data.X)...)
	var kept []quick
	for round := 0; ; round++ {
		for _, q := range e.expect(rows) {
			if q.time <= most {
				kept = append(kept, q)
			}
		}
		slices.SortStableFunc(kept, func(a, b quick) int { return cmp.Compare(a.outcome, b.outcome) })
		kept = kept[:min(len(kept), halfKept)]
		if round == halfRounds || len(kept) == 0 || ctx.Err() != nil {
			break
		}
		rows = nil
		for _, q := range kept {
			for range halfAround {
				x := slices.Clone(q.x)
				for c := range x {
					x[c] = min(1, max(0, x[c]+halfNear/float64(round+1)*rng.NormFloat64()))
				}
				if p := e.encoding.Decode(x); e.problem.Space.Feasible(p) {
					rows = append(rows, e.encoding.Encode(p))
				}
			}
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%w: no point is expected to take half of the best trial's time", errNoHalf)
	}
	found := kept[0]
	mean, variance := e.used.GP.Posterior(mat.NewDense(1, len(found.x), slices.Clone(found.x)))
	value := expected(e.used.Data, e.problem.Direction, mean[0], math.Sqrt(variance[0]))
	return &Half{
		Value: value.Median, Low: value.Low, High: value.High,
		Instead: expected(e.used.Data, e.problem.Direction, here.outcome, 0).Median,
		Seconds: math.Exp(found.time), InsteadSeconds: math.Exp(here.time), Parameters: e.encoding.Decode(found.x),
	}, ctx.Err()
}

// expect returns what is expected at places.
func (e *examination) expect(rows [][]float64) []quick {
	if len(rows) == 0 {
		return nil
	}
	x := mat.NewDense(len(rows), e.encoding.Dim(), nil)
	for i, row := range rows {
		x.SetRow(i, row)
	}
	outcomes, times := e.used.GP.Mean(x), e.clock.used.GP.Mean(x)
	list := make([]quick, len(rows))
	for i, row := range rows {
		list[i] = quick{row, outcomes[i], e.clock.used.Data.Transform().Inverse(times[i])}
	}
	return list
}

// rowsOf returns the rows of x.
func (e *examination) rowsOf(x *mat.Dense) [][]float64 {
	n, _ := x.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = x.RawRowView(i)
	}
	return rows
}
