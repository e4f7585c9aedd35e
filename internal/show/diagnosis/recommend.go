package diagnosis

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

// recommend returns the trial that the study's algorithm recommends; nil if it has no
// model, as the API has it, or if it recommends a front.
func recommend(ctx context.Context, a study.Algorithm, p *optimizer.Problem) (trial *int, front bool, err error) {
	o, err := registry.New(a.Name, a.Settings)
	if err != nil {
		return nil, false, err
	}
	r, err := optimizer.Recommend(ctx, o, p, nil)
	if err != nil || r == nil || r.Front != nil {
		return nil, r != nil, err
	}
	return &r.Trial, false, nil
}
