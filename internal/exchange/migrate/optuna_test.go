package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/google/go-cmp/cmp"
)

// testdata/optuna.log and optuna.db were made by Optuna itself: testdata/make_optuna.py, which
// printed the best trial that is wanted here.
func TestOptuna(t *testing.T) {
	for _, path := range stored("optuna") {
		t.Run(path, func(t *testing.T) { testOptuna(t, path) })
	}
}

func testOptuna(t *testing.T, path string) {
	r, err := Optuna(t.Context(), path, OptunaOptions{Python: python, Study: "My Study", Initial: 3})
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.Parse(r.Study)
	if err != nil {
		t.Fatal(err)
	}
	if s.Metadata.Name != "my-study" || s.Spec.Objective.Direction != study.Minimize || s.Spec.Budget.MaxTrials != 12 {
		t.Errorf("name %q, %+v, %+v", s.Metadata.Name, s.Spec.Objective, s.Spec.Budget)
	}
	types := map[string]study.Type{}
	for _, p := range s.Spec.Parameters {
		types[p.Name] = p.Type
	}
	if diff := cmp.Diff(map[string]study.Type{"lr": study.Float, "width": study.Int, "layers": study.Int, "dropout": study.Float,
		"solver": study.Categorical, "momentum": study.Float}, types); diff != "" {
		t.Error(diff)
	}
	if p := s.Spec.Parameters[0]; p.Scale != study.Log || *p.Min != 1e-5 || *p.Max != 1e-1 {
		t.Errorf("lr is %+v", p)
	}
	if len(s.Spec.Initial) != 3 {
		t.Fatalf("%d initial points", len(s.Spec.Initial))
	}
	want := map[string]any{"lr": 1.923730509654649e-05, "width": int64(20), "layers": int64(1), "dropout": 0.4, "solver": "sgd",
		"momentum": 0.9688321588104364}
	if diff := cmp.Diff(want, s.Spec.Initial[0]); diff != "" {
		t.Error("the best trial:", diff)
	}
	if diff := cmp.Diff(map[string][]any{"solver": {"sgd"}}, s.Spec.Parameters[5].When); diff != "" {
		t.Error("momentum is active:", diff)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "momentum: 8 of 11 ") {
		t.Errorf("notes: %s", notes)
	}
}

func TestOptunaErrors(t *testing.T) {
	type bad struct{ path, study, want string }
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := []bad{
		{filepath.Join("testdata", "job.yaml"), "", "not a storage of Optuna"},
		{empty, "", "not a storage of Optuna"},
		{filepath.Join(t.TempDir(), "none.db"), "", "no such file"},
	}
	for _, path := range stored("optuna") {
		all = append(all, bad{path, "", `several studies: name one of "My Study", "empty"`},
			bad{path, "other", `no study "other": want one of "My Study", "empty"`},
			bad{path, "empty", `no trial of study "empty" has parameters`})
	}
	for _, tt := range all {
		if _, err := Optuna(t.Context(), tt.path, OptunaOptions{Python: python, Study: tt.study}); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: error %v, want %q", tt.path, tt.study, err, tt.want)
		}
	}
}
