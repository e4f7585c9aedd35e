package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/replay"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

const client = "client"

// definition is a study of two floats and a choice, whose trials clients evaluate.
func definition(algorithm string, trials int) record.Study {
	lo, hi := 0.0, 1.0
	return record.Study{ID: "id", Definition: study.Study{
		APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: "replayed"},
		Spec: study.Spec{
			Objective: study.Objective{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
			Parameters: []study.Parameter{
				{Name: "x", Type: study.Float, Min: &lo, Max: &hi},
				{Name: "y", Type: study.Float, Min: &lo, Max: &hi},
				{Name: "kind", Type: study.Categorical, Values: []any{"a", "b"}},
			},
			Initial:   []map[string]any{{"x": 0.5}},
			Algorithm: study.Algorithm{Name: algorithm, Seed: 11},
			Budget:    study.Budget{MaxTrials: trials}, Parallelism: 4, Pool: "default",
		},
	}}
}

// leader leads one study with the engine, and chooses at random what happens next: answers
// come late, trials end in any order, people add trials, and leaders change.
type leader struct {
	t        *testing.T
	rng      *rand.Rand
	spec     record.Study
	own      replay.Optimizers
	settings engine.Settings
	e        *engine.Engine
	now      time.Time
	status   record.Status
	model    record.Model
	trials   map[int]record.Trial
	steps    map[int]int64          // that trials have reported
	curves   map[int]map[int][]byte // segments by trial and number
	asks     []*engine.Ask
	judge    *engine.Judge // the question that is open; nil for none
	ids      int
	edits    bool // of the space
	limited  int  // how often the limits changed
}

func (l *leader) id() string    { l.ids++; return fmt.Sprintf("id%d", l.ids) }
func (l *leader) Nonce() string { return l.id() }
func (l *leader) Trace() string { return l.id() }
func (l *leader) Span() string  { return l.id() }

func optimizers(t *testing.T, algorithm string, settings map[string]any) replay.Optimizers {
	t.Helper()
	o, err := registry.New(algorithm, settings)
	if err != nil {
		t.Fatal(err)
	}
	return replay.Optimizers{Suggest: o, Fallback: sobol.New()}
}

// lead plays a study to its end and returns its records as the ledger gives them back.
func lead(t *testing.T, algorithm string, trials int, seed uint64, edits bool) (record.Study, []record.Trial) {
	t.Helper()
	return play(t, definition(algorithm, trials), seed, edits)
}

// play is lead of a study.
func play(t *testing.T, spec record.Study, seed uint64, edits bool) (record.Study, []record.Trial) {
	t.Helper()
	l := played(t, spec, seed, edits)
	return l.spec, l.records()
}

// played plays a study to its end.
func played(t *testing.T, spec record.Study, seed uint64, edits bool) *leader {
	t.Helper()
	algorithm, trials := spec.Definition.Spec.Algorithm.Name, spec.Definition.Spec.Budget.MaxTrials
	l := &leader{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), spec: spec, own: optimizers(t, algorithm, spec.Definition.Spec.Algorithm.Settings),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), trials: map[int]record.Trial{}, steps: map[int]int64{},
		curves: map[int]map[int][]byte{}, edits: edits,
	}
	_, blind := l.own.Suggest.(optimizer.Blind)
	l.settings = engine.Settings{Blind: blind, Fallback: true, Pruner: pruner.NewFor}
	e, out, err := engine.New(l.spec, l, l.settings, l.now)
	if err != nil {
		t.Fatal(err)
	}
	l.e = e
	l.commit(out)
	l.step(engine.Tick{At: l.now})
	for i := 0; l.status.State == study.Running; i++ {
		if i > 200*trials {
			t.Fatalf("the study does not end: %+v", l.status)
		}
		l.next()
	}
	return l
}

// step applies an event after some time.
func (l *leader) step(ev engine.Event) { l.commit(l.e.Step(ev)) }

func (l *leader) commit(out engine.Output) {
	for _, trial := range out.Trials {
		l.trials[trial.Number] = through(l.t, trial)
	}
	for _, c := range out.Curves {
		if l.curves[c.Trial] == nil {
			l.curves[c.Trial] = map[int][]byte{}
		}
		for _, s := range c.Segments {
			l.curves[c.Trial][s.Number] = s.Data
		}
		maps.DeleteFunc(l.curves[c.Trial], func(n int, _ []byte) bool { return c.Cut && n >= c.Length })
	}
	if out.Status != nil {
		l.status = *out.Status
	}
	if out.Model != nil {
		l.model = *out.Model
	}
	if out.Study != nil {
		l.spec = *out.Study
	}
	if out.Judge != nil {
		l.judge = out.Judge
	}
	for _, ask := range []*engine.Ask{out.Ask, out.Fallback} {
		if ask != nil {
			l.asks = append(l.asks, ask)
		}
	}
}

// through is a record as it is read back from the ledger.
func through[T any](t *testing.T, v T) (read T) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func (l *leader) records() []record.Trial {
	list := make([]record.Trial, 0, len(l.trials))
	for _, trial := range l.trials {
		list = append(list, through(l.t, trial))
	}
	l.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// next lets something happen.
func (l *leader) next() {
	l.now = l.now.Add(time.Duration(l.rng.IntN(2000)) * time.Millisecond)
	l.report()
	switch l.rng.IntN(12) {
	case 0, 1, 2:
		l.step(engine.Seek{At: l.now, Client: client, Want: 1 + l.rng.IntN(5)})
	case 3, 4, 5:
		l.answer()
	case 6, 7, 8:
		l.tell()
	case 9:
		l.step(engine.Tick{At: l.now})
	case 10:
		l.people()
	case 11:
		l.change()
	}
}

// answer answers one of the requests that are open.
func (l *leader) answer() {
	if len(l.asks) == 0 {
		return
	}
	i := l.rng.IntN(len(l.asks))
	ask := l.asks[i]
	l.asks = slices.Delete(l.asks, i, i+1)
	o := l.own.Suggest
	if ask.Fallback {
		o = l.own.Fallback
	}
	s, state, err := o.Suggest(l.t.Context(), ask.Problem, ask.State, ask.N,
		optimizer.NewRand(l.spec.Definition.Spec.Algorithm.Seed, ask.Request))
	l.step(engine.Suggested{At: l.now, Ask: ask, Suggestions: s, State: state, Err: err})
}

// report has the trials of a study with a model of curves report a step, and the model answer what it is asked.
func (l *leader) report() {
	if l.spec.Definition.Spec.EarlyStopping == nil {
		return
	}
	for _, a := range l.e.Open() {
		step := l.steps[a.Attempt.Trial] + 1
		l.steps[a.Attempt.Trial] = step
		loss := reported(l.trials[a.Attempt.Trial].Point, step)
		l.step(engine.Measured{At: l.now, Measurement: &messaging.Measurement{
			AttemptID: a.Attempt, Step: step, Metrics: map[string]float64{"loss": loss},
		}})
	}
	if asked := l.judge; asked != nil {
		l.judge = nil
		judged := drive.Judge(l.t.Context(), asked)
		judged.At = l.now
		judged.Answer.Stop = false // so that trials run long enough to be foreseen
		l.step(judged)
	}
}

// reported is the loss that a trial reports at a step.
func reported(p study.Point, step int64) float64 {
	x, _ := p["x"].(float64)
	return (x-0.3)*(x-0.3) + 1/float64(step)
}

// tell ends one of the trials that the client holds.
func (l *leader) tell() {
	open := l.e.Open()
	if len(open) == 0 {
		return
	}
	a := open[l.rng.IntN(len(open))]
	told := engine.Told{At: l.now, Client: client, Trial: a.Attempt.Trial, Outcome: messaging.OutcomeCompleted}
	p := l.trials[a.Attempt.Trial].Point
	x, _ := p["x"].(float64)
	y, _ := p["y"].(float64)
	if n, ok := p["x"].(int64); ok {
		x = float64(n) / 4
	}
	told.Values = study.Values{(x-0.3)*(x-0.3) + y}
	if p["kind"] == "b" {
		told.Values[0] += 0.1
	}
	if epochs, ok := p["epochs"].(int64); ok {
		told.Values[0] = math.Round(20*(told.Values[0]+(1-x)/float64(epochs))) / 20 // often equal
	}
	if step := l.steps[a.Attempt.Trial]; step > 0 {
		told.Values[0] = reported(p, step) // what it reported last
	}
	if l.spec.Definition.Spec.Several != nil {
		told.Values = append(told.Values, x-y)
	}
	if l.spec.Definition.Spec.Limits != nil {
		told.Metrics = map[string]float64{"memory": x + y}
	}
	if c := l.spec.Definition.Spec.Cost; c != nil {
		told.Metrics = map[string]float64{c.Metric: 1 + 20*x}
	}
	switch l.rng.IntN(10) {
	case 0:
		told.Outcome, told.Values = messaging.OutcomeInfeasible, nil
	case 1:
		told.Outcome, told.Values, told.Failure = messaging.OutcomeFailed, nil, &messaging.Failure{Reason: messaging.ReasonExit, Message: "no"}
	}
	l.step(told)
}

// people do something that no optimiser knows of.
func (l *leader) people() {
	p := study.Point{"x": l.rng.Float64(), "y": l.rng.Float64(), "kind": "a"}
	if l.spec.Definition.Spec.Parameters[0].Type == study.Int {
		p["x"], p["y"] = int64(l.rng.IntN(5)), int64(l.rng.IntN(5))
	}
	if len(l.spec.Definition.Spec.Parameters) > 3 {
		p["epochs"] = []int64{1, 3, 9}[l.rng.IntN(3)]
	}
	switch l.rng.IntN(6) {
	case 0:
		l.step(engine.Enqueue{At: l.now, Point: p})
	case 1:
		values := study.Values{1 + l.rng.Float64(), 0}
		l.step(engine.Add{At: l.now, Point: p, Values: values[:len(l.spec.Definition.Spec.Objectives())],
			Metrics: map[string]float64{"memory": 1}})
	case 2:
		if n := len(l.trials); n > 0 {
			l.step(engine.CancelTrial{At: l.now, Trial: 1 + l.rng.IntN(n)})
		}
	}
}

// change lets another leader take over, or the study be updated.
func (l *leader) change() {
	if l.rng.IntN(3) == 0 {
		spec := l.spec
		if l.edits && l.rng.IntN(3) == 0 { // another space
			max := 0.7 + 0.3*l.rng.Float64()
			if spec.Definition.Spec.Parameters[0].Type == study.Int {
				max = float64(2 + l.rng.IntN(3))
			}
			spec.Definition.Spec.Parameters = slices.Clone(spec.Definition.Spec.Parameters)
			spec.Definition.Spec.Parameters[0].Max = &max
		}
		if spec.Definition.Spec.Limits != nil {
			spec.Definition.Spec.Limits = []study.Limit{{Metric: "memory", Max: new(0.5 + l.rng.Float64())},
				{Metric: "memory", Min: new(0.5 * l.rng.Float64())}}[:1+l.rng.IntN(2)]
			l.limited++
		}
		spec.Definition.Spec.Parallelism = 2 + l.rng.IntN(4)
		l.step(engine.Update{At: l.now, Study: spec})
		return
	}
	e, out, err := engine.Load(l.spec, l.status, l.model, l.records(), l, l.settings, l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	l.e, l.asks, l.judge = e, nil, nil
	l.commit(out)
	for _, trial := range slices.Sorted(maps.Keys(l.curves)) {
		segments := make([][]byte, len(l.curves[trial]))
		for n := range segments {
			segments[n] = l.curves[trial][n]
		}
		stored, err := curve.Read(segments)
		if err != nil {
			l.t.Fatal(err)
		}
		l.step(engine.Recalled{At: l.now, Trial: trial, Curve: stored})
	}
	l.step(engine.Tick{At: l.now})
}

// Whatever happens to a study, the records give every suggestion back.
func TestEverySuggestionIsMadeAgain(t *testing.T) {
	for algorithm, c := range map[string]struct {
		trials int
		seeds  uint64
	}{
		"random": {40, 10}, "sobol": {40, 4}, "tpe": {40, 4}, "cmaes": {40, 4}, "hebo": {16, 2}, "gp": {16, 2}, "forest": {16, 1},
		"turbo": {16, 1},
	} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			compared := 0
			for seed := range c.seeds {
				spec, trials := lead(t, algorithm, c.trials, seed, seed%2 == 1)
				found := run(t, spec, trials, algorithm)
				others, earlier := 0, 0
				for _, trial := range trials {
					if trial.Source == optimizer.SourceAdded || trial.Source == optimizer.SourceRequested {
						others++
					} else if trial.Ask.Space != spec.Space {
						earlier++
					}
				}
				want := replay.Findings{Same: len(trials) - others - earlier, Others: others, Earlier: earlier, Fallbacks: found.Fallbacks}
				compared += want.Same
				if fmt.Sprintf("%+v", *found) != fmt.Sprintf("%+v", want) {
					t.Errorf("seed %d: %+v, want %+v: %v", seed, *found, want, found.First)
				}
			}
			if compared < c.trials/2 {
				t.Errorf("only %d suggestions were compared", compared)
			}
		})
	}
}

// What an optimiser was told of running trials, what they had reported and how they would end, is in the records.
func TestForeseenEndsAreTheSame(t *testing.T) {
	for _, algorithm := range []string{"hebo", "tpe"} {
		spec := definition(algorithm, 24)
		spec.Definition.Spec.EarlyStopping = &study.EarlyStopping{
			Name: pruner.Model, Metric: "loss", Settings: map[string]any{"maxSteps": 40, "protect": 0},
		}
		l := played(t, spec, 5, false)
		told := 0
		for _, trial := range l.records() {
			if trial.Ask != nil && len(trial.Ask.Likely) > 0 {
				told++
			}
		}
		found := run(t, l.spec, l.records(), algorithm)
		if told < 3 || found.First != nil || found.Same < 10 {
			t.Errorf("%s: %d trials were suggested with foreseen ends, %d are the same: %v", algorithm, told, found.Same, found.First)
		}
		byCurves := 0
		for _, trial := range l.records() {
			if strings.Contains(trial.Reasons.Note, "by what trials report") {
				byCurves++
			}
		}
		if algorithm == "hebo" && byCurves < 5 {
			t.Errorf("%d trials were suggested by curves", byCurves)
		}
		changed := func(change func(r *record.Trial)) *replay.Findings {
			trials := l.records()
			for i := range trials {
				if trials[i].Ask != nil {
					trials[i].Ask = new(*trials[i].Ask)
				}
				change(&trials[i])
			}
			return run(t, l.spec, trials, algorithm)
		}
		without := map[string]func(r *record.Trial){
			"how trials would end": func(r *record.Trial) {
				if r.Ask != nil {
					r.Ask.Likely = nil
				}
			},
		}
		if algorithm == "hebo" {
			without["what trials had reported"] = func(r *record.Trial) {
				if r.Ask != nil {
					r.Ask.Last = 0
				}
			}
		}
		for what, change := range without {
			if found := changed(change); found.First == nil {
				t.Errorf("%s: without %s the same trials are suggested", algorithm, what)
			}
		}
		found = changed(func(r *record.Trial) { r.Looks = nil })
		if found.Until == 0 || found.First != nil || !strings.Contains(found.Why, "still runs") {
			t.Errorf("%s: while trials run: %+v", algorithm, found)
		}
	}
}

// After limits have changed, and leaders too, the records give the suggestions before and after it
// back: those before were made with other limits, and other trials were within them.
func TestEditedLimits(t *testing.T) {
	for _, algorithm := range []string{"nsga2", "hebo", "gp"} {
		for _, several := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s several=%v", algorithm, several), func(t *testing.T) {
				t.Parallel()
				spec := definition(algorithm, 24)
				s := &spec.Definition.Spec
				if s.Limits = []study.Limit{{Metric: "memory", Max: new(0.75)}}; algorithm == "nsga2" {
					s.Algorithm.Settings = map[string]any{"population": int64(4)}
				}
				if several {
					s.Several = []study.Objective{s.Objective, {Metric: "size", Direction: study.Maximize, Take: study.TakeLast}}
					s.Objective = study.Objective{}
				}
				l := played(t, spec, 5, false)
				trials := l.records()
				found, err := replay.Run(t.Context(), l.spec, trials, l.own, nil)
				if err != nil {
					t.Fatal(err)
				}
				byModel := 0
				for _, trial := range trials {
					if trial.Source == optimizer.SourceModel {
						byModel++
					}
				}
				if found.First != nil || found.Until != 0 || found.Same != len(trials)-found.Others {
					t.Errorf("%+v: %v", *found, found.First)
				}
				if l.limited < 2 || byModel < 5 {
					t.Errorf("%d edits, and %d suggestions by the model, show too little", l.limited, byModel)
				}
				// The limits of a request matter: with others in its record, another suggestion is made.
				for i := range trials {
					if trials[i].Ask != nil {
						ask := *trials[i].Ask
						ask.Limits = []study.Limit{{Metric: "memory", Min: new(1.5)}}
						trials[i].Ask = &ask
					}
				}
				if found, err = replay.Run(t.Context(), l.spec, trials, l.own, nil); err != nil || found.First == nil {
					t.Errorf("with other limits in the records: %+v, error %v, want a difference", found, err)
				}
			})
		}
	}
}

// A request of a study with a cost has what was left of its budget, by which the suggestions are made again.
func TestStudiesWithACost(t *testing.T) {
	t.Parallel()
	spec := definition("gp", 20)
	s := &spec.Definition.Spec
	s.Cost, s.Budget.MaxCost = &study.Cost{Metric: "dollars"}, 150
	s.Algorithm.Settings = map[string]any{"cost": "cooled"}
	samePlayed(t, played(t, spec, 3, false), "with nothing left in the records", func(ask *record.Ask) {
		ask.Cost = &optimizer.Cost{Metric: "dollars", Budget: 150}
	})
}

// samePlayed holds that a study's suggestions are made again from its records, and are not once its requests are changed as said.
func samePlayed(t *testing.T, l *leader, changed string, change func(*record.Ask)) {
	t.Helper()
	trials := l.records()
	found, err := replay.Run(t.Context(), l.spec, trials, l.own, nil)
	if err != nil || found.First != nil || found.Until != 0 || found.Same < 10 {
		t.Fatalf("%+v, %v, want all suggestions made again: %v", found, err, found.First)
	}
	for i := range trials {
		if trials[i].Ask != nil {
			ask := *trials[i].Ask
			change(&ask)
			trials[i].Ask = &ask
		}
	}
	if found, err = replay.Run(t.Context(), l.spec, trials, l.own, nil); err != nil || found.First == nil {
		t.Errorf("%s: %+v, error %v, want a difference", changed, found, err)
	}
}

func run(t *testing.T, spec record.Study, trials []record.Trial, algorithm string) *replay.Findings {
	t.Helper()
	found, err := replay.Run(t.Context(), spec, trials, optimizers(t, algorithm, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// byNumber orders trials and returns the first suggested one of at least a number.
func byNumber(trials []record.Trial, least int) (list []record.Trial, at int) {
	list = slices.Clone(trials)
	slices.SortFunc(list, func(a, b record.Trial) int { return a.Number - b.Number })
	at = slices.IndexFunc(list, func(t record.Trial) bool { return t.Number >= least && t.Ask != nil && !t.Ask.Fallback })
	return list, at
}

// What differs is named, with the first trial that does.
func TestTheFirstDifferenceIsNamed(t *testing.T) {
	spec, trials := lead(t, "tpe", 30, 1, false)
	trials, at := byNumber(trials, 12)
	number := trials[at].Number
	for _, c := range []struct {
		change func(*record.Trial)
		what   string
	}{
		{func(r *record.Trial) { r.Point = study.Point{"x": 0.123, "y": r.Point["y"], "kind": r.Point["kind"]} },
			"parameter x: recorded 0.123, now "},
		{func(r *record.Trial) { r.Source = optimizer.SourceInitial }, `the source: recorded initial, now `},
		{func(r *record.Trial) { r.Reasons.Note = "because" }, `the reasons: recorded {`},
		{func(r *record.Trial) { r.Place = 99 }, "the answer: recorded suggestion 100, now only "},
	} {
		changed := slices.Clone(trials)
		c.change(&changed[at])
		found := run(t, spec, changed, "tpe")
		want := fmt.Sprintf("trial %d differs: %s", number, c.what)
		if found.First == nil || !strings.HasPrefix(found.First.String(), want) {
			t.Errorf("%v, want %s…", found.First, want)
		}
	}
	// A value that was told otherwise changes what follows.
	changed := slices.Clone(trials)
	done := slices.IndexFunc(changed, func(r record.Trial) bool { return r.State == study.TrialCompleted })
	changed[done].Values = study.Values{-1000}
	if found := run(t, spec, changed, "tpe"); found.First == nil || found.First.Trial <= changed[done].Number {
		t.Errorf("with another result of trial %d: %v, want a later trial that differs", changed[done].Number, found.First)
	}
	// Another seed changes the first suggestion that is not the file's.
	spec.Definition.Spec.Algorithm.Seed++
	if found := run(t, spec, trials, "tpe"); found.First == nil || found.Same > 1 {
		t.Errorf("with another seed: %+v, want a difference at once", found)
	}
}

// Answers that came when the time was over are passed over.
func TestCutAnswers(t *testing.T) {
	for _, algorithm := range []string{"random", "hebo"} {
		spec, trials := lead(t, algorithm, 16, 3, false)
		trials, at := byNumber(trials, 10)
		ask := *trials[at].Ask
		ask.Cut = true
		cut := 0
		for i := range trials {
			if trials[i].Ask != nil && trials[i].Request == trials[at].Request && trials[i].From == trials[at].From && !trials[i].Ask.Fallback {
				trials[i].Ask = &ask
				trials[i].Point = study.Point{"x": 0.25, "y": 0.25, "kind": "a"}
				cut++
			}
		}
		found := run(t, spec, trials, algorithm)
		if found.First != nil && algorithm == "random" || len(found.Cut) != cut {
			t.Errorf("%s: %+v, want %d answers that are passed over", algorithm, found, cut)
		}
		if stateful := algorithm == "hebo"; stateful != (found.Until > 0) {
			t.Errorf("%s: nothing can be compared from trial %d on (%s)", algorithm, found.Until, found.Why)
		}
	}
}

// If the first answer was cut, an optimiser's state is unknown from there on, although no
// answer has shown by then that it has one.
func TestTheFirstAnswerIsCut(t *testing.T) {
	spec, trials := lead(t, "hebo", 16, 3, false)
	trials, at := byNumber(trials, 1)
	ask := *trials[at].Ask
	ask.Cut = true
	for i := range trials {
		if trials[i].Ask != nil && trials[i].Request == trials[at].Request && trials[i].From == trials[at].From && !trials[i].Ask.Fallback {
			trials[i].Ask = &ask
		}
	}
	if found := run(t, spec, trials, "hebo"); found.First != nil || found.Until == 0 {
		t.Errorf("%+v (%v), want no difference, and an end of the replay", found, found.First)
	}
}

// The end of the context is an error.
func TestCancelled(t *testing.T) {
	spec, trials := lead(t, "random", 10, 1, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replay.Run(ctx, spec, trials, optimizers(t, "random", nil), nil); err == nil {
		t.Error("a cancelled replay has no error")
	}
}

// A request of a study that weighs the time of evaluations has how long each pending trial had run, by which the suggestions are made
// again.
func TestStudiesThatWeighTime(t *testing.T) {
	t.Parallel()
	spec := definition("gp", 20)
	spec.Definition.Spec.Algorithm.Settings = map[string]any{"cost": "per-second"}
	samePlayed(t, played(t, spec, 3, false), "without the times in the records", func(ask *record.Ask) { ask.Ran = nil })
}

// A study that learns from an earlier one is replayed by what that said of the time and the cost of its trials, and not without it.
func TestStudiesThatLearnTimes(t *testing.T) {
	t.Parallel()
	trials := make([]study.EarlierTrial, 24)
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range trials {
		x, y := rng.Float64(), rng.Float64()
		trials[i] = study.EarlierTrial{
			Parameters: map[string]any{"x": x, "y": y, "kind": "a"}, Value: (x-0.3)*(x-0.3) + y, Seconds: math.Exp(3 * y), Cost: math.Exp(3 * x),
		}
	}
	without := slices.Clone(trials)
	for i := range without {
		without[i].Seconds, without[i].Cost = 0, 0
	}
	for name, edit := range map[string]func(*study.Spec){
		"time": func(*study.Spec) {}, "cost": func(s *study.Spec) { s.Cost = &study.Cost{Metric: "dollars"} },
	} {
		spec := definition("hebo", 14)
		s := &spec.Definition.Spec
		s.Algorithm.Settings, s.Initial = map[string]any{"cost": "per-second"}, nil
		s.LearnFrom = []study.Earlier{{Study: "march", Trials: trials}}
		edit(s)
		l := played(t, spec, 4, false)
		found, err := replay.Run(t.Context(), through(t, l.spec), l.records(), l.own, nil)
		if err != nil || found.First != nil || found.Until != 0 || found.Same < 8 {
			t.Errorf("%s: %+v, %v, want all suggestions made again: %v", name, found, err, found.First)
		}
		l.spec.Definition.Spec.LearnFrom = []study.Earlier{{Study: "march", Trials: without}}
		fresh := optimizers(t, "hebo", s.Algorithm.Settings)
		if found, err = replay.Run(t.Context(), l.spec, l.records(), fresh, nil); err != nil || found.First == nil {
			t.Errorf("%s: without what trials took: %+v, error %v, want a difference", name, found, err)
		}
	}
}
