package random

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

func TestConformance(t *testing.T) { optimizertest.Run(t, New) }
