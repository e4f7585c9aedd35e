package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// epoch is when every test's study starts.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const studyID = "s1"

// counterIDs are predictable ids: n1, n2, … and traces of the same numbers. A
// later run of ids, after a restart, has a prefix of its own.
type counterIDs struct {
	prefix               string
	nonces, traces, span int
}

func (c *counterIDs) Nonce() string {
	c.nonces++
	return fmt.Sprintf("%sn%d", c.prefix, c.nonces)
}

func (c *counterIDs) Trace() string {
	c.traces++
	return fmt.Sprintf("%032x", c.traces)
}

func (c *counterIDs) Span() string {
	c.span++
	return fmt.Sprintf("%016x", c.span)
}

// newSpec is a study of one float x in [0, 1], or of one integer k in [1, points]
// where points is positive.
func newSpec(points, maxTrials, parallelism int) record.Study {
	lo, hi := 0.0, 1.0
	parameter := study.Parameter{Name: "x", Type: study.Float, Min: &lo, Max: &hi}
	if points > 0 {
		lo, hi = 1, float64(points)
		parameter = study.Parameter{Name: "k", Type: study.Int, Min: &lo, Max: &hi}
	}
	return record.Study{ID: studyID, Created: epoch, Definition: study.Study{
		APIVersion: study.APIVersion, Kind: study.Kind,
		Metadata: study.Metadata{Name: "test"},
		Spec: study.Spec{
			Objective:   study.Objective{Metric: "loss", Direction: study.Minimize, Take: study.TakeLast},
			Parameters:  []study.Parameter{parameter},
			Algorithm:   study.Algorithm{Name: "random", Seed: 7},
			Budget:      study.Budget{MaxTrials: maxTrials},
			Parallelism: parallelism,
			Pool:        "default",
			Trial:       study.TrialTemplate{Command: []string{"true"}},
		},
	}}
}

// ledger keeps what was committed, as JSON, so that a restart reads what a
// ledger would give back.
type ledger struct {
	study, status, model []byte
	trials               map[int][]byte
	curves               map[int]map[int][]byte // segments by trial and number
}

func newLedger(spec record.Study) *ledger {
	return &ledger{study: encode(spec), trials: map[int][]byte{}, curves: map[int]map[int][]byte{}}
}

func (l *ledger) commit(out *Output) {
	for i := range out.Trials {
		l.trials[out.Trials[i].Number] = encode(out.Trials[i])
	}
	for _, c := range out.Curves {
		l.commitCurve(c)
	}
	if out.Model != nil {
		l.model = encode(out.Model)
	}
	if out.Status != nil {
		l.status = encode(out.Status)
	}
	if out.Study != nil {
		l.study = encode(out.Study)
	}
}

func (l *ledger) commitCurve(c curve.Change) {
	if l.curves[c.Trial] == nil {
		l.curves[c.Trial] = map[int][]byte{}
	}
	for _, s := range c.Segments {
		l.curves[c.Trial][s.Number] = s.Data
	}
	maps.DeleteFunc(l.curves[c.Trial], func(n int, _ []byte) bool { return c.Cut && n >= c.Length })
}

// curve is what is stored of a trial's curve; nil for nothing.
func (l *ledger) curve(trial int) *curve.Curve {
	segments := make([][]byte, len(l.curves[trial]))
	if len(segments) == 0 {
		return nil
	}
	for n := range segments {
		segments[n] = l.curves[trial][n]
	}
	c, err := curve.Read(segments)
	if err != nil {
		panic(fmt.Sprintf("trial %d: a curve cannot be read back: %v", trial, err))
	}
	return c
}

// load makes an engine of what was committed.
func (l *ledger) load(ids IDs, s Settings, at time.Time) (*Engine, Output, error) {
	var (
		spec   record.Study
		status record.Status
		model  record.Model
		trials []record.Trial
	)
	decode(l.study, &spec)
	decode(l.status, &status)
	if l.model != nil {
		decode(l.model, &model)
	}
	for _, data := range l.trials {
		var t record.Trial
		decode(data, &t)
		trials = append(trials, t)
	}
	e, out, err := Load(spec, status, model, trials, ids, s, at)
	if err != nil {
		return e, out, err
	}
	for _, number := range slices.Sorted(maps.Keys(l.curves)) { // for the rule for early stopping, and for attempts to come
		if spec.Definition.Spec.EarlyStopping == nil && e.trials.numbered(number).facts().state.Terminal() {
			continue
		}
		out = joined(out, e.Step(Recalled{At: at, Trial: number, Curve: l.curve(number)}))
	}
	return e, out, nil
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a record cannot be written: %v", err))
	}
	return data
}

func decode(data []byte, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		panic(fmt.Sprintf("a record cannot be read back: %v", err))
	}
}

// rig drives one engine and commits each Output.
type rig struct {
	t      testing.TB
	e      *Engine
	ids    *counterIDs
	set    Settings
	ledger *ledger
	now    time.Time
	ask    *Ask
	out    Output
	// fallback answers requests for fallbacks, within the step that makes them; nil
	// leaves them in fell.
	fallback func(*optimizer.Problem, int) ([]optimizer.Suggestion, error)
	fell     *Ask
}

// newRig starts a study.
func newRig(t testing.TB, spec record.Study, set Settings) *rig {
	t.Helper()
	r := &rig{t: t, ids: &counterIDs{}, set: set, ledger: newLedger(spec), now: epoch, fallback: gridFallback}
	e, out, err := New(spec, r.ids, set, epoch)
	if err != nil {
		t.Fatal(err)
	}
	r.e = e
	r.took(out)
	return r
}

// took commits an Output and keeps its requests. It answers one for fallbacks at once
// and returns all that follows as one Output.
func (r *rig) took(out Output) Output {
	r.ledger.commit(&out)
	if out.Ask != nil {
		r.ask = out.Ask
	}
	if ask := out.Fallback; ask != nil && r.fallback != nil {
		list, err := r.fallback(ask.Problem, ask.N)
		out.Fallback = nil // answered
		out = joined(out, r.step(Suggested{At: r.now, Ask: ask, Suggestions: list, Err: err}))
	} else if ask != nil {
		r.fell = ask
	}
	r.out = out
	return out
}

// joined is what two steps ask for together.
func joined(a, b Output) Output {
	for _, t := range a.Trials {
		if !slices.ContainsFunc(b.Trials, func(u record.Trial) bool { return u.Number == t.Number }) {
			b.Trials = append(b.Trials, t)
		}
	}
	slices.SortFunc(b.Trials, func(t, u record.Trial) int { return t.Number - u.Number })
	b.Status, b.Model, b.Study = cmp.Or(b.Status, a.Status), cmp.Or(b.Model, a.Model), cmp.Or(b.Study, a.Study)
	b.Ask, b.Fallback = cmp.Or(b.Ask, a.Ask), cmp.Or(b.Fallback, a.Fallback)
	b.Publish = slices.Concat(a.Publish, b.Publish)
	b.Withdraw = slices.Concat(a.Withdraw, b.Withdraw)
	b.Cancels = slices.Concat(a.Cancels, b.Cancels)
	b.Avoids = slices.Concat(a.Avoids, b.Avoids)
	b.DeadLetters = slices.Concat(a.DeadLetters, b.DeadLetters)
	b.Receipts = slices.Concat(a.Receipts, b.Receipts)
	b.Ended = slices.Concat(a.Ended, b.Ended)
	b.Warnings = slices.Concat(a.Warnings, b.Warnings)
	b.Curves = slices.Concat(a.Curves, b.Curves)
	return b
}

func (r *rig) step(ev Event) Output { return r.took(r.e.Step(ev)) }

// after lets time pass and ticks.
func (r *rig) after(d time.Duration) Output {
	r.now = r.now.Add(d)
	return r.step(Tick{At: r.now})
}

// suggest answers the request under way with points x.
func (r *rig) suggest(xs ...float64) Output {
	list := make([]optimizer.Suggestion, len(xs))
	for i, x := range xs {
		list[i] = optimizer.Suggestion{Point: r.point(x), Source: optimizer.SourceModel}
	}
	return r.answer(list, nil)
}

func (r *rig) answer(list []optimizer.Suggestion, err error) Output {
	r.t.Helper()
	if r.ask == nil {
		r.t.Fatal("the script answers a request that was not made")
	}
	a := r.ask
	r.ask = nil
	return r.step(Suggested{At: r.now, Ask: a, Suggestions: list, State: optimizer.State(fmt.Sprint("after ", a.Request)), Err: err})
}

// point is the point with the value x.
func (r *rig) point(x float64) study.Point { return pointOf(r.e.Spec(), x) }

func pointOf(spec record.Study, x float64) study.Point {
	p := spec.Definition.Spec.Parameters[0]
	if p.Type == study.Int {
		return study.Point{p.Name: int64(x)}
	}
	return study.Point{p.Name: x}
}

// id names a trial's attempt, with the nonce that it has.
func (r *rig) id(trial, attempt int) messaging.AttemptID {
	id := messaging.AttemptID{Study: studyID, Trial: trial, Attempt: attempt, Nonce: "none"}
	if t, ok := r.e.Trial(trial); ok && attempt <= len(t.Attempts) {
		id.Nonce = t.Attempts[attempt-1].Nonce
	}
	return id
}

// result is what a worker reports of an attempt that took a second.
func (r *rig) result(worker string, trial, attempt int, o messaging.Outcome) *messaging.Result {
	return &messaging.Result{
		Version: messaging.SchemaVersion, AttemptID: r.id(trial, attempt), Worker: worker, Outcome: o,
		Started: r.now.Add(-time.Second), Ended: r.now,
	}
}

func (r *rig) finish(worker string, trial, attempt int, o messaging.Outcome) Output {
	return r.step(Finished{At: r.now, Result: r.result(worker, trial, attempt, o)})
}

func (r *rig) complete(worker string, trial, attempt int, value float64) Output {
	res := r.result(worker, trial, attempt, messaging.OutcomeCompleted)
	res.Values = []float64{value}
	res.Metrics = map[string]float64{"loss": value}
	return r.step(Finished{At: r.now, Result: res})
}

// restart loads what was committed, as a new leader does.
func (r *rig) restart() Output {
	r.t.Helper()
	r.ids = &counterIDs{prefix: r.ids.prefix + "r"}
	e, out, err := r.ledger.load(r.ids, r.set, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	r.e, r.ask = e, nil
	return r.took(out)
}

// gridFallback suggests the points 1/64, 2/64, … or 1, 2, … that come first
// and are neither observed nor pending.
func gridFallback(p *optimizer.Problem, n int) ([]optimizer.Suggestion, error) {
	q := p.Space.Parameters()[0]
	taken := map[any]bool{}
	for _, o := range p.Observations {
		taken[o.Point[q.Name]] = true
	}
	for _, o := range p.Pending {
		taken[o.Point[q.Name]] = true
	}
	for _, o := range p.Taken {
		taken[o.At()[q.Name]] = true
	}
	var list []optimizer.Suggestion
	for i := 1; len(list) < n; i++ {
		var v any = *q.Min + float64(i)/(1<<16)
		if q.Type == study.Int {
			if *q.Min+float64(i-1) > *q.Max {
				break
			}
			v = int64(*q.Min) + int64(i-1)
		}
		if !taken[v] {
			list = append(list, optimizer.Suggestion{Point: study.Point{q.Name: v}, Source: optimizer.SourceRandom})
		}
	}
	if len(list) == 0 {
		return nil, optimizer.ErrExhausted
	}
	return list, nil
}
