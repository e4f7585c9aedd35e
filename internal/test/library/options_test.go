package library_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/study"
)

// kept returns the definition that a state, or the server, keeps of a study.
func (b binding) kept(t *testing.T, o *fantasia.Options) *study.Study {
	t.Helper()
	if b.server == nil {
		content, err := os.ReadFile(o.State)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := journal.Read(content)
		if err != nil {
			t.Fatal(err)
		}
		return &stored.Study.Definition
	}
	raw, err := b.server.Call(t.Context(), "GetStudy", []byte(`{"name": "studies/`+o.Name+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Study struct {
			StudyFile string `json:"studyFile"`
		} `json:"study"`
	}
	var definition study.Study
	if err := errors.Join(json.Unmarshal(raw, &answer), json.Unmarshal([]byte(answer.Study.StudyFile), &definition)); err != nil {
		t.Fatal(err)
	}
	return &definition
}

// Labels and the note are kept, may change, and stay if the program gives none.
func TestLabelsAndNote(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		o := b.options(fantasia.Options{Trials: 1, Algorithm: random})
		if b.server == nil {
			o.State = filepath.Join(t.TempDir(), "state")
		}
		for _, step := range []struct {
			labels map[string]string
			note   string
			want   map[string]string
			noted  string
		}{
			{map[string]string{"team": "vision"}, "first", map[string]string{"team": "vision"}, "first"},
			{nil, "", map[string]string{"team": "vision"}, "first"},
			{map[string]string{"team": "speech"}, "second", map[string]string{"team": "speech"}, "second"},
		} {
			o.Labels, o.Note = step.labels, step.note
			space, _ := line()
			u, err := fantasia.Minimize(space, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			if d := b.kept(t, &o); !maps.Equal(d.Metadata.Labels, step.want) || d.Spec.Note != step.noted {
				t.Errorf("with %v and %q, the study has the labels %v and the note %q", step.labels, step.note, d.Metadata.Labels, d.Spec.Note)
			}
		}
		space, _ := line()
		o.Labels, o.Note = map[string]string{"a b": ""}, strings.Repeat("n", study.MaxNote+1)
		if _, err := fantasia.Minimize(space, o); !errors.Is(err, fantasia.ErrInvalid) ||
			!strings.Contains(err.Error(), `Options.Labels: "a b"`) ||
			!strings.Contains(err.Error(), "Options.Note: the note has 4097 bytes") {
			t.Errorf("wrong labels and a long note: %v", err)
		}
	})
}

// The first points are drawn from the priors. A prior that does not fit its parameter is refused.
func TestPriors(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space := fantasia.NewSpace()
		x := space.Float("x", 0, 1, fantasia.Prior(0.9, 0.01))
		n := space.Int("n", 1, 1000, fantasia.Log, fantasia.Prior(10, 0.01))
		kind := space.Choice("kind", []string{"a", "b"}, fantasia.Weights(1, 1e9))
		on := space.Bool("on", fantasia.When(kind, "b"), fantasia.Weights(1e9, 1))
		u := b.minimize(t, space, fantasia.Options{Trials: 3, Algorithm: fantasia.Algorithm{Name: "tpe"}})
		for range 3 {
			trial, err := u.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if v := x.Of(trial); v < 0.8 || n.Of(trial) < 8 || n.Of(trial) > 12 || kind.Of(trial) != "b" || on.Of(trial) {
				t.Errorf("trial %d is %v", trial.Number(), trial.Values())
			}
			if err := u.Tell(trial, 1, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
	each(t, func(t *testing.T, b binding) {
		for want, declare := range map[string]func(*fantasia.Space){
			"prior.mean":    func(s *fantasia.Space) { s.Float("x", 0, 1, fantasia.Prior(2, 1)) },
			"prior.sd":      func(s *fantasia.Space) { s.Float("x", 0, 1, fantasia.Prior(0.5, 0)) },
			"prior.weights": func(s *fantasia.Space) { s.Choice("x", []string{"a", "b"}, fantasia.Weights(1)) },
		} {
			space := fantasia.NewSpace()
			declare(space)
			if _, err := fantasia.Minimize(space, b.options(fantasia.Options{})); !errors.Is(err, fantasia.ErrInvalid) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want an ErrInvalid with %q", err, want)
			}
		}
	})
}
