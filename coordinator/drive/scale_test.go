package drive_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	client = "client"
	trials = 24
	steps  = 8
)

// player evaluates the trials of a study one after the other, as one client does.
type player struct {
	t    *testing.T
	spec study.Spec
	e    *engine.Engine
	asks []*engine.Ask
	now  time.Time
	// report returns the metrics that a trial with a loss reports at a step.
	report func(loss float64, step int) map[string]float64
}

func (p *player) step(ev engine.Event) {
	p.now = p.now.Add(time.Millisecond)
	p.queue(p.e.Step(ev))
}

func (p *player) queue(out engine.Output) {
	if out.Ask != nil {
		p.asks = append(p.asks, out.Ask)
	}
}

// play runs the study to its end, and returns each trial's point and state.
func (p *player) play() (points []study.Point, states []study.TrialState) {
	o, err := registry.New(p.spec.Algorithm.Name, p.spec.Algorithm.Settings)
	if err != nil {
		p.t.Fatal(err)
	}
	spec := record.Study{ID: "id", Definition: study.Study{
		APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: "scale"}, Spec: p.spec,
	}}
	e, out, err := engine.New(spec, drive.IDs{}, engine.Settings{}, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	p.e = e
	p.queue(out)
	for p.e.Status().State == study.Running {
		p.step(engine.Tick{At: p.now})
		p.step(engine.Seek{At: p.now, Client: client, Want: 1})
		for len(p.asks) > 0 {
			answer := drive.Suggest(p.t.Context(), o, p.spec.Algorithm.Seed, p.asks[0])
			p.asks, answer.At = p.asks[1:], p.now
			p.step(answer)
		}
		for _, open := range p.e.Open() {
			p.evaluate(open.Attempt)
		}
	}
	for n := 1; ; n++ {
		t, ok := p.e.Trial(n)
		if !ok {
			return points, states
		}
		points, states = append(points, t.Point), append(states, t.State)
	}
}

// evaluate reports a curve that falls to the loss, and tells the loss unless it is told to stop.
func (p *player) evaluate(id messaging.AttemptID) {
	t, _ := p.e.Trial(id.Trial)
	x, _ := t.Point["x"].(float64)
	y, _ := t.Point["y"].(float64)
	loss := (x-0.3)*(x-0.3) + math.Abs(y-0.6) // many places tie for none
	for step := 1; step <= steps; step++ {
		p.step(engine.Measured{At: p.now, Measurement: &messaging.Measurement{
			Version: messaging.SchemaVersion, AttemptID: id, Worker: client, Step: int64(step), Metrics: p.report(loss, step), At: p.now,
		}})
		if next, err := p.e.Instruct(client, id.Trial, id.Attempt); err != nil || next.Do == engine.Prune {
			p.step(engine.Told{At: p.now, Client: client, Trial: id.Trial, Outcome: messaging.OutcomePruned})
			return
		}
	}
	p.step(engine.Told{At: p.now, Client: client, Trial: id.Trial, Outcome: messaging.OutcomeCompleted, Values: study.Values{loss}})
}

// How reports are scaled says nothing of the values: the optimiser chooses the same points, and the rule stops the same
// trials, if all reports are shifted, scaled, or those of another metric.
func TestScaleOfReportsChangesNothing(t *testing.T) {
	curve := func(loss float64, step int) float64 { return loss + 1/float64(step) }
	scales := map[string]func(v float64) float64{
		"shifted": func(v float64) float64 { return v - 1000 },
		"scaled":  func(v float64) float64 { return 16 * v },
	}
	rules := map[string]map[string]any{
		"median": nil, "percentile": nil, "wilcoxon": nil, "asha": {"minSteps": 1}, "patient": nil,
	}
	for _, algorithm := range []string{"hebo", "gp", "tpe", "forest", "turbo"} {
		for rule, settings := range rules {
			if testing.Short() && algorithm != "tpe" && !(algorithm == "hebo" && rule == "median") {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s", algorithm, rule), func(t *testing.T) {
				t.Parallel()
				lo, hi := 0.0, 1.0
				play := func(metric string, report func(v float64) map[string]float64) ([]study.Point, []study.TrialState) {
					p := &player{t: t, now: time.Unix(0, 0), spec: study.Spec{
						Objective: study.Objective{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
						Parameters: []study.Parameter{
							{Name: "x", Type: study.Float, Min: &lo, Max: &hi}, {Name: "y", Type: study.Float, Min: &lo, Max: &hi},
						},
						Algorithm:     study.Algorithm{Name: algorithm, Seed: 5},
						EarlyStopping: &study.EarlyStopping{Name: rule, Settings: settings, Metric: metric},
						Budget:        study.Budget{MaxTrials: trials}, Parallelism: 1, Pool: "default",
					}}
					p.report = func(loss float64, step int) map[string]float64 { return report(curve(loss, step)) }
					return p.play()
				}
				points, states := play("loss", func(v float64) map[string]float64 { return map[string]float64{"loss": v} })
				if rule != "patient" && !slices.Contains(states, study.TrialPruned) {
					t.Error("no trial was stopped")
				}
				for name, scale := range scales {
					p, s := play("loss", func(v float64) map[string]float64 { return map[string]float64{"loss": scale(v)} })
					if !reflect.DeepEqual(points, p) || !slices.Equal(states, s) {
						t.Errorf("with %s reports, other points or other trials stopped: %v, was %v", name, s, states)
					}
				}
				p, s := play("auc", func(v float64) map[string]float64 { return map[string]float64{"auc": v} })
				if !reflect.DeepEqual(points, p) || !slices.Equal(states, s) {
					t.Errorf("with reports of another metric, other points or other trials stopped: %v, was %v", s, states)
				}
			})
		}
	}
}
