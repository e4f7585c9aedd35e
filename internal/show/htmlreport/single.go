package htmlreport

import (
	"context"

	"github.com/fantasia-hpo/fantasia/internal/show/figure"
)

// Single makes one of the pictures that figure.Single names, of the given parameters. It fits
// the optimiser's model if the picture needs it. The error of a picture that the study does not
// have is a *figure.NoPicture.
func Single(ctx context.Context, src *Source, name string, parameters []string) (figure.Figure, error) {
	wanted, err := figure.Find(name)
	if err != nil {
		return figure.Figure{}, err
	}
	s := &sheet{Source: src, fig: src.figures()}
	return wanted.Draw(s.fig, parameters, func() (figure.Figure, error) {
		return s.fig.Curves(s.curves(), s.withCurves()), nil
	}, func() error {
		if err := s.examine(ctx); err != nil {
			return err
		}
		if s.fig.Model == nil {
			return &figure.NoPicture{Why: s.why}
		}
		return nil
	})
}
