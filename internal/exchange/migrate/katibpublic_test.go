package migrate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// testdata/mpi.yaml, json.yaml and alpha.yaml have the shapes of Experiments in public
// repositories.
func TestKatibPublicShapes(t *testing.T) {
	r, s := imported(t, source(t, "mpi.yaml"))
	rate, notes := ParameterName("--lr"), strings.Join(r.Notes, "\n")
	want := []string{"mpirun", "-np", "2", "python", "train.py", "--lr", "${" + rate + "}", "--num-steps", "${num-steps}"}
	if diff := cmp.Diff(want, s.Spec.Trial.Command); diff != "" || s.Metadata.Name != "exp-v2" {
		t.Errorf("mpi.yaml: %s: %s", s.Metadata.Name, diff)
	}
	for _, piece := range []string{`"exp.v2" is called exp-v2`, `"--lr" is called ` + rate} {
		if !strings.Contains(notes, piece) {
			t.Errorf("mpi.yaml: the notes lack %q:\n%s", piece, notes)
		}
	}
	if !strings.Contains(string(r.Template), "${"+rate+"}") || r.Container != "launcher" {
		t.Errorf("mpi.yaml: container %s in\n%s", r.Container, r.Template)
	}

	_, s = imported(t, source(t, "json.yaml"))
	if e := s.Spec.EarlyStopping; e == nil || e.Name != "median" || s.Spec.Budget.MaxTrials != 15 ||
		s.Spec.Objective.Direction != study.Maximize {
		t.Errorf("json.yaml: %+v", s.Spec)
	}

	_, err := Katib([]byte(strings.Replace(source(t, "json.yaml"), `max: "4"`, `max: "-4"`, 1)), KatibOptions{})
	if err == nil || !strings.Contains(err.Error(), "not valid: spec.parameters[1].max: -4 is below min") {
		t.Errorf("json.yaml with an empty range: %v", err)
	}

	_, err = Katib([]byte(source(t, "alpha.yaml")), KatibOptions{})
	if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), `"kubeflow.org/v1alpha3"`) ||
		!strings.Contains(err.Error(), "write the resource as trialTemplate.trialSpec") {
		t.Errorf("alpha.yaml: %v", err)
	}
}
