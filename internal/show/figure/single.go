package figure

import (
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// Named is a picture that can be had by its name.
type Named struct {
	Name string
	// Parameters is how many parameters it shows. Model means that it needs a model.
	Parameters int
	Model      bool
	// For says of which studies there is a picture; "" for all.
	For string
	// Of makes the figure, with the axes at these places. A figure of parameters that the
	// model was not asked for has no pictures.
	Of func(s *Study, at []int) Figure
}

// Single are the pictures that can be had one by one.
var Single = []Named{
	{"history", 0, false, "", func(s *Study, _ []int) Figure { return s.History() }},
	{"edf", 0, false, "", func(s *Study, _ []int) Figure { return s.EDF() }},
	{"curves", 0, false, "", nil},
	{"allocation", 0, false, stopping, func(s *Study, _ []int) Figure { return s.allocation() }},
	{"front", 0, false, "studies of several objectives", func(s *Study, _ []int) Figure { return s.first() }},
	{"hypervolume", 0, false, fmt.Sprintf("studies of 2 to %d objectives with a completed trial", study.MaxVolume),
		func(s *Study, _ []int) Figure { return s.volume() }},
	{"parallel", 0, false, "", func(s *Study, _ []int) Figure { return s.Parallel() }},
	{"slice", 1, false, "", func(s *Study, at []int) Figure { return bare(s.Slice(at[0], 1)) }},
	{"importances", 0, true, "", func(s *Study, _ []int) Figure { return s.Importances() }},
	{"dependence", 1, true, "", func(s *Study, at []int) Figure { return bare(s.Dependence(at[0])) }},
	{"importances-duration", 0, true, timed, func(s *Study, _ []int) Figure { return s.deciding() }},
	{"duration", 1, true, timed, func(s *Study, at []int) Figure { return bare(s.duration(at[0], 1)) }},
	{"contour", 2, true, "", func(s *Study, at []int) Figure { return bare(s.Contour(at[0], at[1])) }},
	{"fit", 0, true, "", func(s *Study, _ []int) Figure { return s.Fit() }},
	{"staleness", 0, false, "", func(s *Study, _ []int) Figure { return s.Staleness() }},
	{"workers", 0, false, "", func(s *Study, _ []int) Figure { return s.Workers() }},
	{"pending", 0, false, "", func(s *Study, _ []int) Figure { return s.Pending() }},
}

// stopping are the studies of which there is a picture of their steps.
const stopping = "studies with early stopping whose trials have reported steps"

// reads reports whether what the trials reported has to be read first.
func (n *Named) reads() bool { return n.Of == nil || n.For == stopping }

// bare is a figure without words: its picture names the parameters.
func bare(p picture.Picture) (f Figure) {
	if p != nil {
		f.Pictures = append(f.Pictures, p)
	}
	return f
}

// NoPicture is the error of a picture that cannot be had, and says why.
type NoPicture struct {
	Why string
	// Wrong means that no study has it: its name or its parameters are wrong.
	Wrong bool
}

// Error says why there is no picture.
func (e *NoPicture) Error() string { return e.Why }

// Find returns the picture of a name. Its error is a *NoPicture.
func Find(name string) (*Named, error) {
	names := make([]string, len(Single))
	for i := range Single {
		if names[i] = Single[i].Name; names[i] == name {
			return &Single[i], nil
		}
	}
	return nil, wrong("picture is %q; want one of %s", name, strings.Join(names, ", "))
}

func wrong(format string, args ...any) error {
	return &NoPicture{Why: fmt.Sprintf(format, args...), Wrong: true}
}

// Draw makes the picture of a study, of parameters. For a picture that needs what the trials reported, it calls curves, which makes the
// figure of curves and notes with Study.Read what it read; for one that needs a model, it calls model, which sets the study's. Its own
// errors are *NoPicture.
func (n *Named) Draw(s *Study, parameters []string, curves func() (Figure, error), model func() error) (f Figure, err error) {
	all := strings.Join(study.Names(s.Axes), ", ")
	if len(parameters) != n.Parameters {
		return f, wrong("parameters has %d names; the picture %s takes %d, of %s", len(parameters), n.Name, n.Parameters, all)
	}
	at := make([]int, len(parameters))
	for k, p := range parameters {
		if at[k] = s.Axes.Index(p); at[k] < 0 {
			return f, wrong("parameter is %q; want one of %s", p, all)
		}
	}
	if n.reads() {
		if f, err = curves(); err != nil || n.Of == nil {
			return f, err
		}
	}
	if n.Model {
		if err := model(); err != nil {
			return f, err
		}
	}
	if f = n.Of(s, at); len(f.Pictures) > 0 {
		return f, nil
	}
	made := n.For
	switch {
	case made != "":
	case n.Parameters == 2:
		made = fmt.Sprintf("the %d most important pairs of parameters", MaxPlanes)
	default:
		made = fmt.Sprintf("the %d most important parameters", MaxSlices)
	}
	of := ""
	if n.Parameters > 0 {
		of = " of " + strings.Join(parameters, " and ")
	}
	return f, &NoPicture{Why: fmt.Sprintf("there is no picture %s%s: it is made for %s", n.Name, of, made)}
}
