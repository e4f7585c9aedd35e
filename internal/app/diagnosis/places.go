package diagnosis

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/design"
)

// The space is surveyed at so many points, found among so many.
const (
	surveyed    = 1024
	surveyTries = 8 * surveyed
)

// survey returns up to surveyed different points of the space, evenly spread, that
// satisfy its constraints, in the unit cube; nil where none is found. The error is
// that of a space with too many parameters for a Sobol sequence.
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
