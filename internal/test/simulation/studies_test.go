package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/study"
)

// A study with a fidelity has a parameter of this name and so many levels, and promotes one
// trial in reduction.
const (
	fidelity  = "epochs"
	levels    = 3
	reduction = 3
)

// newStudy draws a study: its trials are evaluated by workers, by workers with a rule that
// stops some early, by workers at several levels of a fidelity, or by clients of the API. Without
// a fidelity, it can have several objectives and limits. later is the study with the limits that it
// gets while it runs; nil if they stay.
func (w *world) newStudy(i int) (s, later *study.Study) {
	parameters := []any{
		map[string]any{"name": "x", "type": "float", "min": -1, "max": 1}, map[string]any{"name": "y", "type": "float", "min": 0, "max": 9},
	}
	trial := map[string]any{"command": []any{"program"}, "retries": map[string]any{"lost": w.rng.IntN(4), "failed": w.rng.IntN(3)}}
	spec := map[string]any{
		"objective":   map[string]any{"metric": "loss", "direction": "minimize"},
		"algorithm":   map[string]any{"name": []string{"random", "sobol", "tpe", "cmaes"}[w.rng.IntN(4)], "seed": w.rng.IntN(1000)},
		"budget":      map[string]any{"maxTrials": 5 + w.rng.IntN(31)},
		"parallelism": 1 + w.rng.IntN(5),
		"trial":       trial,
	}
	switch w.rng.IntN(6) {
	case 0, 1:
		spec["earlyStopping"] = map[string]any{"name": "median"}
	case 2:
		parameters = append(parameters, map[string]any{"name": fidelity, "type": "fidelity", "min": 1, "max": math.Pow(reduction, levels-1)})
		trial["retries"] = map[string]any{"lost": 100, "failed": 10}
	case 3:
		delete(trial, "command")
	}
	if x := w.draw("objectives", i); x < 0.5 && len(parameters) == 2 {
		w.severalObjectives(spec, 2+int(4*x))
	}
	spec["parameters"] = parameters
	if len(parameters) > 2 || w.draw("limits", i) > 0.4 {
		return w.parse(i, spec), nil
	}
	limitable(spec)
	spec["limits"] = w.drawLimits(i, 0)
	s = w.parse(i, spec)
	if w.draw("other limits", i) < 0.7 {
		spec["limits"] = w.drawLimits(i, 1)
		later = w.parse(i, spec)
	}
	return s, later
}

// parse returns the study with a specification.
func (w *world) parse(i int, spec map[string]any) *study.Study {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": study.APIVersion, "kind": study.Kind, "metadata": map[string]any{"name": fmt.Sprint("study-", i)}, "spec": spec,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := inject.ParseStudy("study.json", raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func hasFidelity(s *study.Study) bool {
	return slices.ContainsFunc(s.Spec.Parameters, func(p study.Parameter) bool { return p.Type == study.Fidelity })
}

// create asks whoever leads for a study, until it is there.
func (w *world) create(ctx context.Context, s *study.Study) {
	for n := 0; ctx.Err() == nil; n++ {
		c := w.coordinators[n%len(w.coordinators)].running()
		if c == nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := c.Create(call, s)
		cancel()
		switch {
		case err == nil || errors.Is(err, ledger.ErrNameTaken):
			return
		case !errors.Is(err, coordinator.ErrNotLeader):
			w.logs.note("create: " + err.Error())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// idOf returns the id of a study, whatever the faults; empty if the ledger has none.
func (w *world) idOf(name string) string {
	var named struct {
		ID string `json:"id"`
	}
	key := ledger.DefaultPrefix + "names/" + name
	if value, err := seal.Open(key, w.etcd.Value(key)); err == nil { // there may be none
		_ = json.Unmarshal(value, &named)
	}
	return named.ID
}
