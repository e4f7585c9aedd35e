package picture_test

import (
	"encoding/xml"
	"math"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// FuzzEscaping draws what a study's author can name, and its values: a picture is one
// well-formed element whose parts only draw, whatever they are.
func FuzzEscaping(f *testing.F) {
	f.Add("loss", "rate", "adam", 0.5, -2.0)
	f.Add(`</text><script>alert(1)</script>`, `" onload="alert(2)`, `]]>&amp;<!--`, math.Inf(1), math.NaN())
	f.Add("\x00\xff\u2028\ufffe", "a\nb", `'><img src=x>`, 1e308, -1e308)
	f.Fuzz(func(t *testing.T, metric, name, level string, a, b float64) {
		objective := picture.Objective{Name: metric}
		choice := picture.Parameter{Name: name, Levels: []string{level, level + "2"}, Key: "p." + name}
		number := picture.Parameter{Name: level, Low: min(a, b), High: max(a, b), Key: name}
		for kind, p := range map[string]picture.Picture{
			"history": &picture.History{Objective: objective, Evaluations: []picture.Evaluation{
				{Trial: 1, X: 1, State: picture.Completed, Value: a}, {Trial: 2, X: 2, State: picture.Failed, Value: math.NaN(), Reason: level},
				{Trial: 3, X: 3, State: picture.Completed, Value: b},
			}},
			"parallel": &picture.Parallel{Objective: objective, Key: name, Parameters: []picture.Parameter{choice, number},
				Evaluations: []picture.Evaluation{
					{Trial: 1, State: picture.Completed, Value: a, At: []float64{0, a}},
					{Trial: 2, State: picture.Completed, Value: b, At: []float64{1, b}},
				}},
			"slice": &picture.Slice{Objective: objective, Parameter: choice, Best: 1,
				Evaluations: []picture.Evaluation{{Trial: 1, At: []float64{1}, State: picture.Completed, Value: a}}},
			"choice": &picture.Choice{Objective: objective, Parameter: number, At: []float64{a, b}, Mean: []float64{a, b}, Low: []float64{b, a},
				High: []float64{a, a}, Trial: 3,
				Evaluated: []picture.Evaluation{{Trial: 1, At: []float64{a}, State: picture.Completed, Value: b}},
				Pending:   []picture.Evaluation{{Trial: 2, At: []float64{b}}}},
			"acquisition": &picture.Acquisition{Parameter: choice, Function: metric, At: []float64{0, 1}, Worth: []float64{a, b}, Here: 1, Trial: 3},
			"bars":        &picture.Bars{Caption: metric, Whole: name, Part: level, Bars: []picture.Bar{{Name: name, Value: a, Part: b}}},
			"plane": &picture.Contour{Objective: objective, X: number, Y: choice, Xs: []float64{a, b}, Ys: []float64{0, 1},
				Mean: [][]float64{{a, b}, {b, a}}, SD: [][]float64{{1, 1}, {1, 1}}},
		} {
			drawn := string(p.SVG(picture.Frame{Width: 600, Inline: true}))
			decoder, depth, roots := xml.NewDecoder(strings.NewReader(drawn)), 0, 0
			for {
				token, err := decoder.Token()
				if token == nil && err.Error() == "EOF" {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %s", kind, err, drawn)
				}
				switch e := token.(type) {
				case xml.StartElement:
					if depth == 0 {
						roots++
					}
					depth++
					if !draws[e.Name.Local] {
						t.Fatalf("%s: the element %s", kind, e.Name.Local)
					}
					for _, attribute := range e.Attr {
						if local := strings.ToLower(attribute.Name.Local); strings.HasPrefix(local, "on") || local == "href" {
							t.Fatalf("%s: the attribute %s of %s", kind, local, e.Name.Local)
						}
					}
				case xml.EndElement:
					depth--
				case xml.Comment, xml.Directive, xml.ProcInst:
					t.Fatalf("%s: %T", kind, e)
				}
			}
			if roots != 1 {
				t.Fatalf("%s: %d elements beside each other", kind, roots)
			}
		}
	})
}

// draws are the elements of pictures.
var draws = map[string]bool{
	"svg": true, "g": true, "title": true, "desc": true, "text": true, "tspan": true, "style": true, "defs": true, "linearGradient": true,
	"stop": true,
	"line": true, "path": true, "rect": true, "circle": true, "polyline": true, "polygon": true, "clipPath": true, "use": true,
}
