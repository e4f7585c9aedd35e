package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// wave is a smooth function with a minimum, for made-up studies.
func wave(x, y float64) float64 {
	return 0.05 + (x-0.3)*(x-0.3) + 0.5*(y-0.6)*(y-0.6) + 0.05*math.Sin(9*x)*math.Cos(7*y)
}

var (
	loss   = picture.Objective{Name: "loss"}
	rate   = picture.Parameter{Name: "learning rate", Low: 1e-4, High: 1, Scale: picture.Log}
	drop   = picture.Parameter{Name: "dropout", Low: 0.001, High: 0.99, Scale: picture.Logit}
	layers = picture.Parameter{Name: "layers", Low: 1, High: 6, Whole: true}
	kind   = picture.Parameter{Name: "kernel", Levels: []string{"linear", "rbf", "a polynomial of a high degree"}}
)

// sample is a made-up study of n evaluations, which are spread over the unit square.
func sample(n int) (evaluations []picture.Evaluation, x, y []float64) {
	for i := range n {
		u, v := math.Mod(0.5+float64(i)*0.754877666, 1), math.Mod(0.5+float64(i)*0.569840296, 1)
		e := picture.Evaluation{Trial: i + 1, X: float64(i + 1), State: picture.Completed, Value: wave(u, v)}
		switch {
		case i%13 == 5:
			e.State, e.Reason = picture.Failed, "exit code 1"
		case i%17 == 7:
			e.State, e.Reason = picture.Pruned, "worse than the median"
		case i == 20:
			e.State = picture.Infeasible
		case i == 11:
			e.Value = 40 // an outlier
		}
		evaluations, x, y = append(evaluations, e), append(x, u), append(y, v)
	}
	return evaluations, x, y
}

// samples are all pictures of a made-up study.
func samples() map[string]picture.Picture {
	evaluations, x, y := sample(60)
	goal := 0.02
	history := &picture.History{Objective: loss, Evaluations: evaluations, Recommended: 12, Goal: &goal}
	var predictions []picture.Prediction
	var attempts []picture.Attempt
	var steps []picture.Step
	var stale []picture.Point
	curves := &picture.Curves{Objective: loss, Best: 43}
	for i, e := range evaluations {
		r := math.Pow(10, -4+4*x[i])
		conditional := 0.001 + 0.98*y[i]
		if i%3 == 0 {
			conditional = math.NaN()
		}
		evaluations[i].At = []float64{r, conditional, float64(1 + i%6), float64(i % 3), 0.001 + 0.989*y[i]}
		if e.State == picture.Completed && i != 11 {
			predictions = append(predictions, picture.Prediction{Trial: e.Trial, Observed: e.Value, Mean: e.Value + 0.02*math.Sin(float64(i)),
				Low: e.Value - 0.04, High: e.Value + 0.05})
		}
		start := float64(i/4)*30 + float64(i%4)
		attempts = append(attempts, picture.Attempt{Trial: e.Trial, Number: 1, Worker: []string{"gpu-1", "gpu-2.cluster.example.org"}[i%2],
			Start: start, End: start + 20 + float64(i%7), State: e.State, Reason: e.Reason})
		steps = append(steps, picture.Step{At: start, N: i % 5})
		stale = append(stale, picture.Point{X: float64(i + 1), Y: float64(i % 4), Trial: i + 1})
		c := picture.Curve{Trial: e.Trial, State: e.State}
		for s := range 30 {
			c.Steps = append(c.Steps, int64(s))
			c.Values = append(c.Values, wave(x[i], y[i])+math.Exp(-float64(s)/8))
			if e.State == picture.Pruned && s == 9 {
				break
			}
		}
		curves.Curves = append(curves.Curves, c)
	}
	attempts = append(attempts, picture.Attempt{Trial: 61, Number: 2, Worker: "gpu-1", Start: 440, End: math.NaN(), State: picture.Running})
	contour := &picture.Contour{Objective: loss, X: rate, Y: drop, AxisY: 4, Evaluations: evaluations, Best: 43}
	mixed := &picture.Contour{Objective: loss, X: rate, Y: kind, Ys: []float64{0, 1, 2}}
	depend := &picture.Dependence{Objective: loss, Parameter: rate}
	for i := range 11 {
		u := float64(i) / 10
		contour.Xs = append(contour.Xs, math.Pow(10, -4+4*u))
		l := math.Log(0.001/0.999) + u*(math.Log(0.99/0.01)-math.Log(0.001/0.999))
		contour.Ys = append(contour.Ys, 1/(1+math.Exp(-l)))
		depend.At = append(depend.At, math.Pow(10, -4+4*u))
		m := wave(u, 0.5)
		depend.Mean, depend.Low, depend.High = append(depend.Mean, m), append(depend.Low, m-0.05), append(depend.High, m+0.05)
	}
	mixed.Xs = contour.Xs
	for j := range 11 {
		var mean, sd []float64
		for i := range 11 {
			mean, sd = append(mean, wave(float64(i)/10, float64(j)/10)), append(sd, 0.01+0.05*math.Abs(math.Sin(float64(i*j)/30)))
		}
		contour.Mean, contour.SD = append(contour.Mean, mean), append(contour.SD, sd)
		if j < 3 {
			mixed.Mean, mixed.SD = append(mixed.Mean, mean), append(mixed.SD, sd)
		}
	}
	chosen := &picture.Choice{Objective: loss, Parameter: rate, At: depend.At, Mean: depend.Mean, Low: depend.Low, High: depend.High, Here: 3,
		Trial: 61, Evaluated: evaluations}
	worth := &picture.Acquisition{Parameter: rate, Function: "logei", At: depend.At,
		Worth: []float64{0, 0.05, 0.4, 1, 0.3, 0.02, 0, 0.5, 0.6, 0.1, 0}, Here: 3, Trial: 61}
	for i := range 5 {
		chosen.Pending = append(chosen.Pending,
			picture.Evaluation{Trial: 56 + i, At: []float64{math.Pow(10, -3+0.5*float64(i))}, State: picture.Running})
	}
	worth.Pending = chosen.Pending
	leveled := &picture.Choice{Objective: loss, Parameter: kind, At: []float64{0, 1, 2}, Mean: []float64{0.3, 0.2, 0.25},
		Low: []float64{0.2, 0.15, 0.1}, High: []float64{0.4, 0.25, 0.4}, Here: 1, Trial: 61, Axis: 3, Evaluated: evaluations}
	levelWorth := &picture.Acquisition{Parameter: kind, Function: "logei", At: []float64{0, 1, 2}, Worth: []float64{0.4, 1, 0}, Here: 1,
		Trial: 61, Pending: []picture.Evaluation{{Trial: 60, At: []float64{2}, State: picture.Running}}}
	clock := make([]picture.Point, 0, 60)
	for _, p := range history.Best() {
		clock = append(clock, picture.Point{X: p.X * 120, Y: p.Y * 1.2})
	}
	front := &picture.Front{X: loss, Y: picture.Objective{Name: "images a second", Maximize: true}, Knee: 31, Line: true}
	for i, e := range evaluations {
		p := picture.Point{X: e.Value, Y: 100 + 900*y[i], Trial: e.Trial}
		if front.Dominated = append(front.Dominated, p); i%4 == 0 {
			share := float64(i) / 60
			front.Optimal = append(front.Optimal, picture.Point{X: 0.05 + 0.4*share*share, Y: 600 + 500*share, Trial: e.Trial + 2})
		}
	}
	allocation := &picture.Allocation{Length: 30, Missing: 2}
	for i, e := range evaluations {
		a := picture.Allotted{Trial: e.Trial, State: e.State, To: 30}
		switch {
		case i == 7:
			a.State, a.To = picture.Continued, 10
		case i == 44:
			a.From = 10 // goes on where another one stopped
		case e.State != picture.Completed:
			a.To = float64(3 + i%17)
		case i >= 58:
			a.State, a.To = picture.Running, float64(4*(61-i))
		}
		if i != 33 && i != 50 {
			allocation.Trials = append(allocation.Trials, a)
		}
	}
	return map[string]picture.Picture{
		"allocation": allocation,
		"front":      front,
		"history":    history,
		"edf":        &picture.EDF{Objective: loss, Evaluations: evaluations},
		"curves":     curves,
		"slice":      &picture.Slice{Objective: loss, Parameter: rate, Evaluations: evaluations, Best: 43},
		"slice-expected": &picture.Slice{Objective: picture.Objective{Name: "seconds", Plain: true}, Parameter: rate,
			Evaluations: evaluations, Best: 43, Expected: depend},
		"slice-levels": &picture.Slice{Objective: loss, Parameter: kind, Axis: 3, Evaluations: evaluations, Best: 43},
		"parallel": &picture.Parallel{Objective: loss, Parameters: []picture.Parameter{rate, drop, layers, kind},
			Evaluations: evaluations},
		"contour":        contour,
		"contour-levels": mixed,
		"dependence":     depend,
		"dependence-levels": &picture.Dependence{Objective: loss, Parameter: kind, At: []float64{0, 1, 2}, Mean: []float64{0.3, 0.2, 0.25},
			Low: []float64{0.2, 0.15, 0.1}, High: []float64{0.4, 0.25, 0.4}},
		"choice": chosen, "choice-levels": leveled, "acquisition": worth, "acquisition-levels": levelWorth,
		"importances": &picture.Bars{Caption: "share of the model's variance", Whole: "with its interactions", Part: "by itself", Percent: true,
			Bars: []picture.Bar{
				{Name: "learning rate", Value: 0.7, Part: 0.5}, {Name: "kernel", Value: 0.3, Part: 0.1}, {Name: "layers", Value: 0.002}}},
		"failures": &picture.Bars{Caption: "by reason", Color: 1,
			Bars: []picture.Bar{{Name: "exit code 1", Value: 4}, {Name: "timeout", Value: 1}}},
		"fit":       &picture.Fit{Objective: loss, Predictions: predictions, Interval: "95% interval"},
		"pending":   &picture.Pending{Steps: steps, Limit: 4},
		"staleness": &picture.Staleness{Points: stale},
		"gantt":     &picture.Gantt{Attempts: attempts, End: 470},
		"compare": &picture.Compare{Objective: loss, Clock: true, Studies: []picture.Progress{
			{Name: "first", Points: clock}, {Name: "second", Points: history.Best()}}},
	}
}

// titles are those of the pictures; the others are named after their parameters.
var titles = map[string]string{
	"allocation": "steps of the trials",
	"front":      "two objectives",
	"history":    "a study", "edf": "values",
	"curves": "curves", "contour": "learning rate and dropout", "contour-levels": "learning rate and kernel",
	"parallel": "all parameters", "importances": "importances", "failures": "failures", "fit": "fit", "pending": "under way",
	"staleness": "staleness", "gantt": "workers", "compare": "two studies",
}

// valid checks that a picture is XML, with only finite numbers.
func valid(t *testing.T, svg []byte) {
	t.Helper()
	if text := string(svg); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("the picture holds a number that is none")
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in:\n%s", err, svg)
		}
	}
}

// Each picture looks as it did when a person looked at it last, for a wide page and for
// a telephone.
func TestPictures(t *testing.T) {
	for name, p := range samples() {
		for suffix, f := range map[string]picture.Frame{"": {}, "-narrow": {Width: 360}} {
			f.Title = titles[name]
			svg := p.SVG(f)
			valid(t, svg)
			golden(t, name+suffix+".svg", string(svg))
		}
	}
}
