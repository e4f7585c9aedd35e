package fantasia_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fantasia-hpo/fantasia"
)

// A noisy study of 64 points uses its budget of 80 trials, and recommends by what it has learnt of the noise, also
// if nobody has said that there is some. A study without noise ends when all points have been evaluated.
func TestNoisyFiniteSpaces(t *testing.T) {
	for noise, want := range map[float64]int{0.1: 80, 0: 64} {
		space := fantasia.NewSpace()
		i, j := space.Int("i", 0, 7), space.Int("j", 0, 7)
		study, err := fantasia.Maximize(space, fantasia.Options{Trials: 80, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer study.Close()
		rng, ran := rand.New(rand.NewPCG(1, 1)), 0
		err = study.Run(t.Context(), func(_ context.Context, tr *fantasia.Trial) (float64, error) {
			ran++
			return 0.6 - 0.02*(math.Pow(float64(i.Of(tr)-5), 2)+math.Pow(float64(j.Of(tr)-2), 2)) + noise*rng.NormFloat64(), nil
		})
		if err != nil || ran != want {
			t.Errorf("with noise %g, %d trials were evaluated, want %d: %v", noise, ran, want, err)
		}
		r, err := study.Recommended(t.Context())
		if err != nil || math.Abs(r.Mean-0.6) > 0.06 {
			t.Errorf("with noise %g, recommends %v, want about 0.6: %v", noise, r, err)
		}
	}
}
