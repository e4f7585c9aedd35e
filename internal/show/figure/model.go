package figure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
)

// Model is all that figures show of the optimiser's model of a study, so that they never
// wait for it. It is never changed.
type Model struct {
	*diagnosis.Diagnosis
	// along has what the model expects along the most important parameters, by name.
	along map[string]*picture.Dependence
	// took has what a model expects of the trials' times, in seconds, along the parameters that decide them most; clocked are
	// these parameters, the first one first.
	took    map[string]*picture.Dependence
	clocked []string
	// planes are those of the most important pairs, with all other parameters as in the
	// point called origin.
	planes  []*diagnosis.Plane
	origin  string
	leftOut []diagnosis.LeftOut
}

// Fit fits the model to a study's trials, which took so long. The planes go through origin, which is a point
// called name; nil leaves them out. If ctx ends once the model is fitted, figures that there
// was no time for are missing. The error is that of diagnosis.Examine.
func Fit(
	ctx context.Context, s *study.Study, p *optimizer.Problem, took []time.Duration, origin study.Point, name string,
) (*Model, error) {
	found, model, err := diagnosis.Examine(ctx, s, p, took)
	if err != nil {
		return nil, err
	}
	axes := AxesOf(s)
	m := &Model{Diagnosis: found, along: map[string]*picture.Dependence{}, took: map[string]*picture.Dependence{}, origin: name}
	names := study.Names(indices.Pick(axes, axes.ranked(m)))
	for _, name := range names[:min(len(names), MaxSlices)] {
		if ctx.Err() != nil {
			break
		}
		if at, expected := model.Along(name); len(at) > 0 {
			d := &picture.Dependence{At: at}
			d.Mean, d.Low, d.High = bands(expected)
			m.along[name] = d
		}
	}
	if found.Durations != nil {
		for _, i := range axes.by(found.Durations.Importance) {
			if len(m.clocked) == MaxSlices || ctx.Err() != nil {
				break
			}
			name := axes[i].Name
			if at, expected := model.Took(name); len(at) > 0 {
				d := &picture.Dependence{At: at}
				d.Mean, d.Low, d.High = bands(expected)
				m.took[name], m.clocked = d, append(m.clocked, name)
			}
		}
	}
	if origin != nil {
		m.planes = model.Planes(ctx, names, origin, MaxPlanes)
	}
	m.leftOut = model.LeftOut()
	return m, nil
}

// bands returns the parts of expectations, as pictures take them.
func bands(list []diagnosis.Expected) (mean, low, high []float64) {
	for _, e := range list {
		mean, low, high = append(mean, e.Median), append(low, e.Low), append(high, e.High)
	}
	return mean, low, high
}

// shares are bars of importances.
func shares(list []diagnosis.Importance) *picture.Bars {
	b := &picture.Bars{Caption: "share of the model's variance", Whole: "with its interactions", Part: "by itself", Percent: true,
		None: "There is no ranking yet."}
	for _, p := range list {
		b.Bars = append(b.Bars, picture.Bar{
			Name: p.Parameter, Value: p.Total, Part: min(p.First, p.Total),
			Note: fmt.Sprintf("%s: %.0f%%, by itself %.0f%%", p.Parameter, 100*p.Total, 100*p.First),
		})
	}
	return b
}

// Importances shows how much each parameter matters, by the model.
func (s *Study) Importances() Figure {
	b := shares(nil)
	if s.Model != nil {
		b = shares(s.Model.Importance)
		for _, f := range s.Model.Findings {
			if f.Topic == diagnosis.TopicParameters && !f.Judged {
				b.None = f.Statement
			}
		}
	}
	return one("importances", "Importances", "How much of the change of the objective comes from each parameter, as the model sees it. The "+
		"dark part is what the parameter does by itself; the rest comes from its interactions with others (Sobol indices of the model). "+
		"Search unimportant ones no further.", b)
}

// Dependence is the picture of what the model expects along the i-th axis; nil if that is
// not known.
func (s *Study) Dependence(i int) picture.Picture {
	if s.Model == nil || s.Model.along[s.Axes[i].Name] == nil {
		return nil
	}
	d := *s.Model.along[s.Axes[i].Name]
	d.Objective, d.Parameter = s.objective(), axis(&s.Axes[i])
	return &d
}

// Fit shows the predictions of trials by the model that has not seen them.
func (s *Study) Fit() Figure {
	p := &picture.Fit{Objective: s.objective(), Interval: "95% interval"}
	if s.Model != nil {
		for _, l := range s.Model.leftOut {
			p.Predictions = append(p.Predictions, picture.Prediction{Trial: l.Trial, Observed: l.Observed, Mean: l.Median, Low: l.Low, High: l.High})
		}
	}
	return one("fit", "Predictions against outcomes", "Each dot is an evaluation that the model predicted without having seen it "+
		"(leave-one-out). Dots near the dashed line mean a good model. About 19 of 20 bars should cross the line: if many miss it, the model "+
		"is too sure of itself.", p)
}

// Contours shows what the model expects of the most important pairs of parameters.
func (s *Study) Contours() (figures []Figure) {
	if s.Model == nil {
		return nil
	}
	help := "The two most telling parameters against each other, with all others as in " + s.Model.origin +
		": what the model expects, and how uncertain it is. Dots are evaluations, the large one is the best. A good region that is also " +
		"uncertain is worth more evaluations."
	for _, p := range s.Model.planes {
		if x, y := s.Axes.Index(p.X), s.Axes.Index(p.Y); x >= 0 && y >= 0 {
			figures = append(figures, one(fmt.Sprintf("contour-%d-%d", x, y), p.X+" and "+p.Y, help, s.contour(x, y, p)))
			help = "As above, with all other parameters as in " + s.Model.origin + "."
		}
	}
	return figures
}

// Contour is the picture of two axes, in either order; nil if the model was not asked for it.
func (s *Study) Contour(x, y int) picture.Picture {
	for _, pair := range [][2]int{{x, y}, {y, x}} {
		x, y := pair[0], pair[1]
		if k := slices.IndexFunc(s.Model.planes, func(p *diagnosis.Plane) bool {
			return p.X == s.Axes[x].Name &&
				p.Y == s.Axes[y].Name
		}); k >= 0 {
			return s.contour(x, y, s.Model.planes[k])
		}
	}
	return nil
}

func (s *Study) contour(x, y int, p *diagnosis.Plane) picture.Picture {
	return &picture.Contour{
		Objective: s.objective(), X: axis(&s.Axes[x]), Y: axis(&s.Axes[y]), AxisX: x, AxisY: y,
		Xs: p.Xs, Ys: p.Ys, Mean: p.Mean, SD: p.SD, Evaluations: s.evaluations(), Best: s.Best,
	}
}

// Choice shows why a model chose a trial's point: along each line, what it expected and how
// much each place was worth evaluating. known are the evaluations that had ended, and open
// those that had not.
func (s *Study) Choice(c *diagnosis.Choice, trial int, known, open []*Trial) (figures []Figure) {
	evaluated, pending := evaluations(known), evaluations(open)
	for n, l := range c.Lines {
		i := s.Axes.Index(l.Parameter)
		if i < 0 {
			continue
		}
		expected := &picture.Choice{
			Objective: s.objective(), Parameter: axis(&s.Axes[i]), Axis: i, At: l.At, Here: l.Here, Trial: trial,
			Evaluated: evaluated, Pending: pending,
		}
		expected.Mean, expected.Low, expected.High = bands(l.Expected)
		f := one(fmt.Sprintf("around-%d", i), l.Parameter, "As before.", expected)
		if n == 0 {
			f.Help = "What the model expected along this parameter, with all others as in this trial. Dots are trials that had ended; their " +
				"other parameters differ."
		}
		if l.Worth != nil {
			if n == 0 {
				f.Help += " Below: the acquisition function, which says how much each place was worth evaluating. It falls where points are pending."
			}
			f.Pictures = append(f.Pictures, &picture.Acquisition{
				Parameter: expected.Parameter, Axis: i, Function: cmp.Or(acquisitionTexts[c.Acquisition], c.Acquisition),
				At: l.At, Worth: l.Worth, Here: l.Here, Trial: trial, Pending: pending,
			})
		}
		figures = append(figures, f)
	}
	return figures
}

// acquisitionTexts are the names of acquisition functions as people know them. Shares of a
// logarithm are those of the function itself.
var acquisitionTexts = map[string]string{"logei": "expected improvement"}
