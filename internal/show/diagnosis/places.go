package diagnosis

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
)

// The number of points at which the space is surveyed, and of points tried for them.
const (
	surveyed    = 1024
	surveyTries = 8 * surveyed
)

// survey returns up to surveyed distinct, evenly spread points of the space that
// satisfy its constraints, in the unit cube, or nil if it finds none. It fails if
// the space has too many parameters for a Sobol sequence.
func survey(p *optimizer.Problem, encoding *optimizer.Encoding) (*mat.Dense, error) {
	dim := encoding.Dim()
	sequence, err := design.NewScrambledSobol(dim, p.Seed)
	if err != nil {
		return nil, fmt.Errorf("survey the space: %w", err)
	}
	var data []float64
	seen := map[string]bool{}
	u := make([]float64, dim)
	for i := range uint32(surveyTries) {
		sequence.At(u, i)
		point := encoding.Decode(u)
		key := p.Space.Key(point)
		if seen[key] || !p.Space.Feasible(point) {
			continue
		}
		seen[key] = true
		if data = append(data, encoding.Encode(point)...); len(data) == surveyed*dim {
			break
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	return mat.NewDense(len(data)/dim, dim, data), nil
}
