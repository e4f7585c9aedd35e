package fantasia_test

import (
	"errors"
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia"
)

// A report whose step would be dropped is an error that says what is wanted, for a trial's objective and for
// each criterion of its own.
func TestReportRefusesStepsThatDoNotGrow(t *testing.T) {
	space, _ := line()
	u, err := fantasia.Minimize(space, fantasia.Options{Trials: 1, Algorithm: random})
	if err != nil {
		t.Fatal(err)
	}
	trial, err := u.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		step  int
		value float64
		ok    bool
	}{{-1, 1, false}, {0, 1, true}, {0, 2, false}, {3, math.NaN(), true}, {2, 1, false}, {math.MaxInt64, 1, true}, {math.MaxInt64, 1, false}} {
		err := trial.Report(r.step, r.value)
		if (err == nil) != r.ok || err != nil && !errors.Is(err, fantasia.ErrInvalid) {
			t.Errorf("step %d: %v, taken should be %v", r.step, err, r.ok)
		}
	}
	if err := errors.Join(u.Tell(trial, 1, nil), u.Close()); err != nil {
		t.Fatal(err)
	}
}
