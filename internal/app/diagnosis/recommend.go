package diagnosis

import (
	"context"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

// recommend returns the point that the study's algorithm recommends, or the default
// algorithm if the study's recommends nothing.
func recommend(ctx context.Context, a study.Algorithm, p *optimizer.Problem) (*optimizer.Recommendation, error) {
	o, err := registry.New(a.Name, a.Settings)
	if err != nil {
		return nil, err
	}
	if _, ok := o.(optimizer.Recommender); !ok {
		if o, err = registry.New(registry.Default, nil); err != nil {
			return nil, err
		}
	}
	return optimizer.Recommend(ctx, o, p, nil)
}
