package gpbo

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

func TestConformance(t *testing.T) {
	optimizertest.Run(t, func() optimizer.Optimizer { return New(DefaultOptions()) })
}
