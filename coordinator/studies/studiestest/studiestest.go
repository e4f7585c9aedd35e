// Package studiestest makes studies for the tests of what works with them, without a ledger.
package studiestest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Definition returns the definition of a study of one number.
func Definition(name string, trials, parallelism int, change ...func(*study.Spec)) *study.Study {
	lo, hi := -1.0, 1.0
	s := &study.Study{
		APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: name},
		Spec: study.Spec{
			Objective:   study.Objective{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
			Parameters:  []study.Parameter{{Name: "x", Type: study.Float, Min: &lo, Max: &hi, Scale: study.Linear}},
			Algorithm:   study.Algorithm{Name: "random", Seed: 1},
			Budget:      study.Budget{MaxTrials: trials},
			Parallelism: parallelism,
			Pool:        study.DefaultPool,
			Trial:       study.TrialTemplate{Command: []string{"true"}, Mode: study.ModeProcess},
		},
	}
	for _, f := range change {
		f(&s.Spec)
	}
	return s
}

// New returns the studies of a term and its group, whose commits store nothing. The studies have no
// optimisers: the test answers what the group releases.
func New(t testing.TB) (*studies.Studies, *commit.Group) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	m, err := metrics.New(metricnoop.NewMeterProvider().Meter(""), metrics.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	g := commit.New(log, m, nil)
	g.WriteWith(nobody{})
	return studies.NewStudies(studies.Options{
		Log: log, Group: g, Changed: func(string) {},
		NewOptimizer: func(study.Algorithm) (optimizer.Optimizer, error) { return nil, nil },
	}), g
}

// nobody is a ledger that stores nothing.
type nobody struct{}

func (nobody) Commit(context.Context, *ledger.Batch) error                { return nil }
func (nobody) Create(context.Context, *record.Study, *ledger.Batch) error { return nil }

// Start adds a running study, whose id is its name.
func Start(t testing.TB, s *studies.Studies, definition *study.Study, now time.Time) *studies.Study {
	t.Helper()
	e, out, err := engine.New(record.Study{ID: definition.Metadata.Name, Definition: *definition}, drive.IDs{}, engine.Settings{}, now)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Adopt(&ledger.Records{Study: e.Spec(), Status: *out.Status}, now)
	if r.Broken != nil {
		t.Fatal(r.Broken)
	}
	s.Step(r, engine.Tick{At: now}) // opens the study: see engine.Tick
	return r
}
