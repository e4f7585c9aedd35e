package sobol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestConformance(t *testing.T) { optimizertest.Run(t, New) }

func points(s *optimizertest.Session) []study.Point {
	var all []study.Point
	for _, b := range s.Suggested {
		all = append(all, b.Point)
	}
	return all
}

// Requests of any size continue one sequence: the scrambled one of the study's seed.
func TestRequestsContinueOneSequence(t *testing.T) {
	space := optimizertest.Cube(t, 3, 0, 1)
	s := optimizertest.NewSession(t, New(), space, 42)
	for _, n := range []int{1, 3, 4} {
		s.Ask(n)
	}
	sequence, err := design.NewScrambledSobol(3, 42)
	if err != nil {
		t.Fatal(err)
	}
	encoding := optimizer.NewEncoding(space)
	var want []study.Point
	for i := range uint32(8) {
		x := make([]float64, 3)
		sequence.At(x, i)
		want = append(want, encoding.Decode(x))
	}
	if diff := cmp.Diff(want, points(s)); diff != "" {
		t.Errorf("(-sequence +suggested):\n%s", diff)
	}
}

// If constraints exclude points, the next request continues after them, and the sizes
// of batches do not matter.
func TestInfeasiblePointsAreSkippedOnce(t *testing.T) {
	space := optimizertest.Space(t, optimizertest.Cube(t, 2, 0, 1).Parameters(), []string{"x1 + x2 <= 0.7"})
	one, three := optimizertest.NewSession(t, New(), space, 1), optimizertest.NewSession(t, New(), space, 1)
	for range 12 {
		one.Ask(1)
	}
	for range 4 {
		three.Ask(3)
	}
	if diff := cmp.Diff(points(one), points(three)); diff != "" {
		t.Errorf("(-one by one +three by three):\n%s", diff)
	}
}

// Losing the state only revisits points that were excluded.
func TestLostState(t *testing.T) {
	space := optimizertest.Cube(t, 2, 0, 1)
	s, lost := optimizertest.NewSession(t, New(), space, 1), optimizertest.NewSession(t, New(), space, 1)
	for range 6 {
		s.Ask(1)
		lost.Ask(1)
		lost.State = nil
	}
	if diff := cmp.Diff(points(s), points(lost)); diff != "" {
		t.Errorf("(-kept +lost):\n%s", diff)
	}
}
