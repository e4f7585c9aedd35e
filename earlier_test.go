package fantasia_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia"
)

// A study learns from one that has been closed and opened again, in the other direction and in a wider range; it goes
// on with what it has read, whatever the earlier one has become.
func TestLearnFrom(t *testing.T) {
	state := filepath.Join(t.TempDir(), "april.study")
	ctx := t.Context()
	march, other := lines(t, 1), lines(t, 2)
	open := func(from *fantasia.Study) *fantasia.Study {
		t.Helper()
		is := fantasia.NewSpace()
		is.Float("x", -10, 10)
		april, err := fantasia.Minimize(is, fantasia.Options{State: state, Trials: 20, Seed: 2, LearnFrom: []*fantasia.Study{from, from}})
		if err != nil {
			t.Fatal(err)
		}
		return april
	}
	april := open(march)
	trial, err := april.Ask(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if at := trial.Values()["x"].(float64); at < 1 || at > 5 {
		t.Errorf("the first point is %v, want one near 3", at)
	}
	if err := errors.Join(april.Tell(trial, 1, nil), april.Close()); err != nil {
		t.Fatal(err)
	}
	if err := open(other).Close(); err != nil {
		t.Error(err)
	}
}

// lines returns a study of 20 trials that has ended: it looked for the largest value, which is at 3.
func lines(t *testing.T, seed uint64) *fantasia.Study {
	t.Helper()
	space := fantasia.NewSpace()
	x := space.Float("x", -20, 20)
	s, err := fantasia.Maximize(space, fantasia.Options{Trials: 20, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		d := x.Of(trial) - 3
		return -d * d, nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLearnFromIsChecked(t *testing.T) {
	space := func() *fantasia.Space {
		s := fantasia.NewSpace()
		s.Float("x", 0, 1)
		return s
	}
	empty, err := fantasia.Minimize(space(), fantasia.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	other := fantasia.NewSpace()
	rate := other.Float("rate", 0, 1)
	renamed, err := fantasia.Minimize(other, fantasia.Options{Trials: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer renamed.Close()
	if err := renamed.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		return rate.Of(trial), nil
	}); err != nil {
		t.Fatal(err)
	}
	for want, from := range map[string]*fantasia.Study{
		"Options.LearnFrom[0] was not opened": nil, "Options.LearnFrom[0] has no completed trial": empty,
		"Options.LearnFrom[0] is of no use: its trials have none of the parameters that this study searches (x)": renamed,
	} {
		_, err := fantasia.Minimize(space(), fantasia.Options{LearnFrom: []*fantasia.Study{from}})
		if !errors.Is(err, fantasia.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
}
