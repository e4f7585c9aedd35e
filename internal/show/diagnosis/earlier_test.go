package diagnosis_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
)

// Of three earlier studies, one ranks points as the study does, one upside down, and one at random.
func TestEarlierStudies(t *testing.T) {
	space := optimizertest.Cube(t, 3, 0, 1)
	value := func(x []float64) float64 { return (x[0]-0.7)*(x[0]-0.7) + x[1] }
	p := evaluated(t, space, 60, 1, func(x []float64, _ *rand.Rand) float64 { return value(x) })
	encoding, rng := optimizer.NewEncoding(space), rand.New(rand.NewPCG(5, 5))
	for name, cost := range map[string]func(x []float64) float64{
		"alike":  func(x []float64) float64 { return math.Exp(3 * value(x)) },
		"upside": func(x []float64) float64 { return -value(x) },
		"chance": func([]float64) float64 { return rng.Float64() },
	} {
		e := optimizer.Earlier{Name: name}
		for range 50 {
			x := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
			e.Points, e.Costs = append(e.Points, encoding.Decode(x)), append(e.Costs, cost(x))
		}
		p.Earlier = append(p.Earlier, e)
	}
	r, _, err := diagnosis.Examine(t.Context(), named("april", nil), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Earlier) != 3 {
		t.Fatalf("the earlier studies are %+v", r.Earlier)
	}
	for _, e := range r.Earlier {
		if e.Trials != 50 || e.Study == "alike" && e.Agreement < 0.9 || e.Study == "upside" && e.Agreement > -0.9 ||
			e.Study == "chance" && math.Abs(e.Agreement) > 0.5 {
			t.Errorf("%+v", e)
		}
	}
	for _, f := range r.Findings {
		if f.Topic == diagnosis.TopicEarlier {
			if !strings.Contains(f.Statement, "as this study does: alike.") ||
				!strings.Contains(f.Statement, "upside down, and counts so: upside.") {
				t.Errorf("the finding is %+v", f)
			}
			return
		}
	}
	t.Error("there is no finding about earlier studies")
}
