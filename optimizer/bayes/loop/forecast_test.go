package loop

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// By hand: in the first two functions, the first place gains most together, then the third one, which improves on it in the second
// function. The second place is never better than these, so it would gain nothing of the 5 in the third function; but the batch is
// larger than the places, and repeats one of them.
func TestBatchGains(t *testing.T) {
	gains := mat.NewDense(3, 4, []float64{
		4, 1, 3, 0,
		2, 1, 5, 0,
		0, 2, 1, 7,
	})
	if got := batchGains(gains); !slices.Equal(got, []float64{3, 7}) {
		t.Errorf("the batch gains %v, want 3 and 7", got)
	}
}
