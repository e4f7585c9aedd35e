package htmlreport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// ErrNoPicture means that a study has no picture of the kind that was asked for.
var ErrNoPicture = errors.New("there is no such picture")

// Single makes one of the pictures that figure.Single names, of the given parameters. It fits
// the optimiser's model if the picture needs it. The error of a picture that the study does not
// have is an ErrNoPicture.
func Single(ctx context.Context, src *Source, name string, parameters []string) (f figure.Figure, err error) {
	k := slices.IndexFunc(figure.Single, func(n figure.Named) bool { return n.Name == name })
	if k < 0 {
		names := make([]string, len(figure.Single))
		for i, n := range figure.Single {
			names[i] = n.Name
		}
		return f, fmt.Errorf("%w: picture is %q; want one of %s", ErrNoPicture, name, strings.Join(names, ", "))
	}
	wanted := &figure.Single[k]
	s := &sheet{Source: src, fig: src.figures()}
	if n := wanted.Parameters; len(parameters) != n {
		return f, fmt.Errorf("%w: parameters has %d names; the picture %s takes %d, of %s", ErrNoPicture, len(parameters), name, n, strings.Join(study.Names(s.fig.Axes), ", "))
	}
	var at []int
	for _, p := range parameters {
		i := s.fig.Axes.Index(p)
		if i < 0 {
			return f, fmt.Errorf("%w: parameter is %q; want one of %s", ErrNoPicture, p, strings.Join(study.Names(s.fig.Axes), ", "))
		}
		at = append(at, i)
	}
	switch name {
	case "history":
		return s.fig.History(false), nil
	case "curves":
		return s.fig.Curves(s.curves(), s.withCurves()), nil
	}
	if wanted.Model {
		if err := s.examine(ctx); err != nil {
			return f, err
		}
		if s.fig.Model == nil {
			return f, fmt.Errorf("%w: %s", ErrNoPicture, s.why)
		}
	}
	if f = wanted.Of(s.fig, at); len(f.Pictures) > 0 {
		return f, nil
	}
	if wanted.For != "" {
		return f, fmt.Errorf("%w: the picture %s is made for %s", ErrNoPicture, name, wanted.For)
	}
	if wanted.Parameters == 2 {
		return f, fmt.Errorf("%w: contours are made for the %d most important pairs of parameters, and %s is none of them", ErrNoPicture, figure.MaxPlanes, strings.Join(parameters, " and "))
	}
	return f, fmt.Errorf("%w: the picture %s is made for the %d most important parameters, and %s is none of them", ErrNoPicture, name, figure.MaxSlices, parameters[0])
}
