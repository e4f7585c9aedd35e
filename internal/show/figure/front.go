package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// mostPairs bounds the pairs of objectives with a picture of their own.
const mostPairs = 6

// Inside returns a function that reports whether a point is in the study's space, as after an
// edit not every point is. Trials outside do not count for the front.
func Inside(s *study.Study) func(study.Point) bool {
	sp, err := space.Of(s)
	return func(p study.Point) bool {
		if err != nil {
			return true
		}
		_, err := sp.Normalize(p)
		return err == nil
	}
}

// Chosen returns a study whose first objective is the one of a metric, so that figures that
// show one objective show this one. The error names the metrics. Trials that belong to it are
// those that First returns for the same place.
func Chosen(s *study.Study, metric string) (chosen *study.Study, place int, err error) {
	names := study.MetricNames(s.Spec.Objectives())
	if place = slices.Index(names, metric); place < 0 {
		return nil, 0, fmt.Errorf("%q is not an objective; want one of %s", metric, strings.Join(names, ", "))
	}
	if place == 0 {
		return s, 0, nil
	}
	other := *s
	other.Spec.Several = First(s.Spec.Several, place)
	return &other, place, nil
}

// First returns a list in which the element at a place is the first; shorter lists stay as they
// are.
func First[T any](list []T, place int) []T {
	if place == 0 || place >= len(list) {
		return list
	}
	return slices.Concat(list[place:place+1], list[:place], list[place+1:])
}

// First returns the trial with the objective at a place as its first.
func (t *Trial) First(place int) *Trial {
	if place == 0 {
		return t
	}
	other := *t
	other.Values, other.Value = First(t.Values, place), math.NaN()
	if place < len(t.Values) {
		other.Value = t.Values[place]
	}
	return &other
}

// values returns the values of trials that count for the front; nil for the others.
func values(trials []*Trial) []study.Values {
	list := make([]study.Values, len(trials))
	for i, t := range trials {
		if t.Counts() && !t.Outside {
			list[i] = t.Values
		}
	}
	return list
}

// Front returns the shown trials that no other one dominates, the best in the first objective
// first, and the knee of the front; nil if there is one objective.
func (s *Study) Front() (list []*Trial, knee *Trial) {
	if len(s.Spec.Several) == 0 {
		return nil, nil
	}
	all := values(s.Trials)
	for _, i := range front.Of(s.Spec.Several, all) {
		list = append(list, s.Trials[i])
	}
	if k := front.Knee(s.Spec.Several, all); k >= 0 {
		knee = s.Trials[k]
	}
	return Top(list, s.Direction(), len(list)), knee
}

// Fronts are the figures of several objectives: the front by each pair of them, and the
// hypervolume.
func (s *Study) Fronts() []Figure {
	if len(s.Spec.Several) == 0 {
		return nil
	}
	list := s.pairs()
	if volume := s.Hypervolume(); volume != nil {
		list = append(list, *volume)
	}
	return list
}

// pairs shows the front by each pair of objectives.
func (s *Study) pairs() (list []Figure) {
	const help = "Each dot is a trial. Those on the front are better than any other trial in at least one objective: which of them to use " +
		"is a choice between the objectives. At the knee, a small gain in one objective costs most of the others. "
	n := len(s.Spec.Several)
	if n == 2 {
		return []Figure{broad("front", "Front", help+"The line surrounds what they dominate.", s.Pair(0, 1))}
	}
	for x := range n {
		for y := x + 1; y < n && len(list) < mostPairs; y++ {
			f := one(fmt.Sprintf("front-%d-%d", x, y), fmt.Sprintf("Front: %s and %s", s.Spec.Several[x].Metric, s.Spec.Several[y].Metric),
				"As before.", s.Pair(x, y))
			if len(list) == 0 {
				f.Help = help + "Dots of the front that others here seem to beat are on it because of another objective."
			}
			list = append(list, f)
		}
	}
	if pairs := n * (n - 1) / 2; pairs > mostPairs {
		list[0].Lines = append(list[0].Lines, fmt.Sprintf("Shown are the first %d of %d pairs of objectives.", mostPairs, pairs))
	}
	return list
}

// Pair is the picture of the front by two objectives.
func (s *Study) Pair(x, y int) *picture.Front {
	list, knee := s.Front()
	p := &picture.Front{X: drawn(&s.Spec.Several[x]), Y: drawn(&s.Spec.Several[y]), Line: len(s.Spec.Several) == 2}
	if knee != nil {
		p.Knee = knee.Number
	}
	optimal := map[int]bool{}
	at := func(t *Trial) picture.Point { return picture.Point{X: t.Values[x], Y: t.Values[y], Trial: t.Number} }
	for _, t := range list {
		optimal[t.Number] = true
		p.Optimal = append(p.Optimal, at(t))
	}
	for i, v := range values(s.Trials) {
		if v != nil && !optimal[s.Trials[i].Number] {
			p.Dominated = append(p.Dominated, at(s.Trials[i]))
		}
	}
	return p
}

func drawn(o *study.Objective) picture.Objective {
	return picture.Objective{Name: o.Metric, Maximize: o.Direction == study.Maximize}
}

// Hypervolume shows how the front has grown; nil if there are too many objectives, or no trial
// has values.
func (s *Study) Hypervolume() *Figure {
	if len(s.Spec.Several) > study.MaxVolume {
		return nil
	}
	ended := s.Ended()
	all := values(ended)
	reference := front.Beyond(s.Spec.Several, all)
	if reference == nil {
		return nil
	}
	line := picture.Series{Name: "hypervolume", Kind: picture.Steps}
	for i, v := range front.Volumes(s.Spec.Several, all, reference) {
		if n := len(line.Points); n == 0 || v > line.Points[n-1].Y || i == len(all)-1 {
			line.Points = append(line.Points, picture.Point{X: float64(i + 1), Y: v, Trial: ended[i].Number})
		}
	}
	series := []picture.Series{line}
	measured := front.References(s.Spec.Several) != nil
	if goal := s.Spec.Goal; goal != nil && measured {
		at := goal.Hypervolume
		series = append(series, picture.Series{
			Name: "goal " + view.Number(at), Kind: picture.Lines, Thin: true, Color: 3, Dash: 1,
			Points: []picture.Point{{X: 1, Y: at}, {X: float64(max(2, len(all))), Y: at}},
		})
	}
	f := broad("hypervolume", "Hypervolume", "How much of the space of values the trials dominate together, in the order in which they "+
		"ended. It grows with each better compromise; a line that has been flat for long says that more evaluations bring little.",
		&picture.Chart{
			X: "evaluations", Y: "hypervolume, higher is better", FromZero: true, Unlisted: len(series) == 1, Series: series,
		})
	f.Lines = []string{fmt.Sprintf("The hypervolume reaches up to %s.", view.Named(study.MetricNames(s.Spec.Several), reference))}
	if !measured {
		f.Lines[0] += " Where a study file has no reference, that is a tenth beyond the worst value on the front, so that studies cannot be " +
			"compared by it."
	}
	return &f
}

// addObjectives adds the axes of all objectives but the first to parallel coordinates.
func (s *Study) addObjectives(p *picture.Parallel) {
	if len(s.Spec.Several) == 0 {
		return
	}
	p.Evaluations = slices.Clone(p.Evaluations)
	for k := 1; k < len(s.Spec.Several); k++ {
		a := picture.Parameter{Name: drawn(&s.Spec.Several[k]).Caption(), Low: math.Inf(1), High: math.Inf(-1)}
		for i, t := range s.Ended() {
			v := math.NaN()
			if t.Completed() && k < len(t.Values) {
				v = t.Values[k]
				a.Low, a.High = min(a.Low, v), max(a.High, v)
			}
			p.Evaluations[i].At = append(slices.Clip(p.Evaluations[i].At), v)
		}
		if a.Low > a.High {
			a.Low, a.High = 0, 1
		}
		p.Parameters = append(p.Parameters, a)
	}
}

// first is the picture of the front by the first two objectives; none for one objective.
func (s *Study) first() (f Figure) {
	if len(s.Spec.Several) > 0 {
		f = bare(s.Pair(0, 1))
		f.Title = "Front"
	}
	return f
}

// volume is Hypervolume, without pictures if there is none.
func (s *Study) volume() (f Figure) {
	if h := s.Hypervolume(); len(s.Spec.Several) > 0 && h != nil {
		f = *h
	}
	return f
}

// Compromises returns the front of a ledger's trials for terminals; nil for one objective.
func Compromises(spec *study.Study, trials []record.Trial) *picture.Front {
	if len(spec.Spec.Several) == 0 {
		return nil
	}
	s, inside := &Study{Spec: &spec.Spec}, Inside(spec)
	for i := range trials {
		t := Of(&spec.Spec, nil, &trials[i])
		t.Outside = !inside(trials[i].Point)
		s.Trials = append(s.Trials, t)
	}
	return s.Pair(0, 1)
}
