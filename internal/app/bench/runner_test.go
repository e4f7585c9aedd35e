package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/google/go-cmp/cmp"
)

// objective is a test function.
func objective(t testing.TB, name string, noise float64) *Objective {
	t.Helper()
	f, err := testfunc.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewFunction(f, noise, 0)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// small returns a plan of a few quick runs of random, sobol and others.
func small(t testing.TB, others ...string) *Plan {
	t.Helper()
	variants, err := ParseVariants(append([]string{"random,sobol"}, others...))
	if err != nil {
		t.Fatal(err)
	}
	return &Plan{
		Variants: variants, Objectives: []*Objective{objective(t, "branin", 0), objective(t, "hartmann3", 0.1)},
		Modes: Modes(), Laws: []string{"lognormal"}, Seeds: []uint64{1, 2}, Durations: ByPoint,
		Charge: Charge{Fixed: 0.01}, Workers: 4, Trials: 10, Version: "test",
	}
}

// play plays a plan into a file, and returns its groups and the last progress.
func play(t testing.TB, p *Plan, path string, jobs int) ([]*Group, Progress) {
	t.Helper()
	store, err := OpenStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	var last Progress
	r := &Runner{
		Plan: p, Store: store, Jobs: jobs, NewOptimizer: registry.New,
		Progress: func(now Progress) { last = now },
	}
	groups, err := r.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return groups, last
}

// results returns the lines of all runs without measured seconds, by key.
func results(t testing.TB, groups []*Group) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, g := range groups {
		for _, run := range g.Runs {
			key, err := run.Spec.Key()
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(run.Result)
			if err != nil {
				t.Fatal(err)
			}
			all[key] = string(line)
		}
	}
	return all
}

// The runs are the same bits for any number of jobs (JSON has the shortest decimals
// that read back equal).
func TestSameResultsWhateverTheJobs(t *testing.T) {
	dir := t.TempDir()
	model := registry.Default
	first, _ := play(t, small(t, model), filepath.Join(dir, "1.jsonl"), 1)
	second, _ := play(t, small(t, model), filepath.Join(dir, "5.jsonl"), 5)
	want := results(t, first)
	if p := small(t, model); len(want) != p.Size() {
		t.Fatalf("%d runs, want %d", len(want), p.Size())
	}
	if diff := cmp.Diff(want, results(t, second)); diff != "" {
		t.Errorf("5 jobs (-1 job +5 jobs):\n%s", diff)
	}
	// Reading back returns what was played.
	third, last := play(t, small(t, model), filepath.Join(dir, "5.jsonl"), 2)
	if diff := cmp.Diff(want, results(t, third)); diff != "" {
		t.Errorf("read back (-played +read):\n%s", diff)
	}
	if last.Kept != last.All || last.Done != last.All {
		t.Errorf("progress %+v, want everything kept", last)
	}
}

func TestRunsObeyTheirSpec(t *testing.T) {
	// noise=no recommends the best value without a fit.
	p := small(t, registry.Default+"{noise=no}")
	groups, _ := play(t, p, filepath.Join(t.TempDir(), "runs.jsonl"), 2)
	for _, g := range groups {
		synchronous := g.Runs[Synchronous]
		for mode, run := range g.Runs {
			r := &run.Result
			if n := len(r.Evaluations); n < p.Trials || mode != Asynchronous && n != p.Trials {
				t.Errorf("%s: %d evaluations", &run.Spec, n)
			}
			for i, e := range r.Evaluations {
				if i > 0 && e.Told < r.Evaluations[i-1].Told {
					t.Errorf("%s: trial %d is told before the one before it", &run.Spec, e.Trial)
				}
				if e.Made > e.Start || e.Start > e.End || e.End > e.Told {
					t.Errorf("%s: trial %d is out of order: %+v", &run.Spec, e.Trial, e)
				}
				if limit := map[Mode]int{Sequential: 0, Synchronous: 3, Asynchronous: 3}[mode]; e.Pending > limit {
					t.Errorf("%s: trial %d has %d pending", &run.Spec, e.Trial, e.Pending)
				}
				if e.Loss < 0 {
					t.Errorf("%s: trial %d is better than the minimum by %v", &run.Spec, e.Trial, -e.Loss)
				}
				if want := g.Objective.loss(e.Value); g.Objective.Noise == 0 && e.Loss != want {
					t.Errorf("%s: trial %d has the loss %v, want %v", &run.Spec, e.Trial, e.Loss, want)
				}
			}
			switch best := newTrace(r, g.Objective).after(p.Trials); {
			case g.Objective.Noise == 0 || g.Variant.Optimizer != registry.Default:
				if r.Recommended != nil {
					t.Errorf("%s: recommended %v, want nothing", &run.Spec, *r.Recommended)
				}
			case r.Recommended == nil || *r.Recommended != best:
				t.Errorf("%s: recommended %v, want %v", &run.Spec, r.Recommended, best)
			}
		}
		if end := g.Runs[Asynchronous].Result.End; end < synchronous.Result.End {
			t.Errorf("%s ends at %v, the synchronous run at %v", &synchronous.Spec, end, synchronous.Result.End)
		}
	}
}

// A trial has the same duration and noise under every optimiser and mode.
func TestRunsShareTheirLuck(t *testing.T) {
	p := small(t)
	p.Durations, p.Objectives = Drawn, p.Objectives[1:]
	groups, _ := play(t, p, filepath.Join(t.TempDir(), "runs.jsonl"), 2)
	type luck struct{ seed, trial int }
	durations, noises := map[luck]float64{}, map[luck]float64{}
	for _, g := range groups {
		for _, run := range g.Runs {
			for _, e := range run.Result.Evaluations {
				at := luck{int(g.Seed), e.Trial}
				for _, x := range []struct {
					seen map[luck]float64
					got  float64
				}{{durations, e.End - e.Start}, {noises, e.Value - e.Loss - *g.Objective.Minimum}} {
					if before, ok := x.seen[at]; ok && math.Abs(before-x.got) > 1e-9 {
						t.Fatalf("trial %d of seed %d: %v, before %v", e.Trial, g.Seed, x.got, before)
					}
					x.seen[at] = x.got
				}
			}
		}
	}
}

// A file that was cut while a line was written loses only that run.
func TestResumeAfterACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	p := small(t)
	groups, _ := play(t, p, path, 2)
	want := results(t, groups)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	half := len(lines) / 2
	cut := append(bytes.Join(lines[:half], nil), lines[half][:len(lines[half])/2]...)
	if err := os.WriteFile(path, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	again, last := play(t, p, path, 2)
	if diff := cmp.Diff(want, results(t, again)); diff != "" {
		t.Errorf("resumed (-whole +resumed):\n%s", diff)
	}
	if last.Kept != half {
		t.Errorf("%d runs are from before, want %d", last.Kept, half)
	}
	mended, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(mended, []byte("\n")); got != len(lines) || !bytes.HasPrefix(mended, bytes.Join(lines[:half], nil)) {
		t.Errorf("the file has %d lines, want %d, the kept ones as they were", got, len(lines))
	}
}

func TestStoreLeavesOutWhatIsNoRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	if err := os.WriteFile(path, []byte("nonsense\n\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Unreadable != 2 {
		t.Errorf("%d lines are unreadable, want 2", s.Unreadable)
	}
	if _, err := OpenStore(path); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v, want ErrInUse", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenStore(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Every part of a spec makes it another run.
func TestKeysTellRunsApart(t *testing.T) {
	keys := map[string]bool{}
	for _, s := range []Spec{
		{}, {Optimizer: "a"}, {Settings: map[string]any{"k": 1}}, {Settings: map[string]any{"k": "1"}}, {Objective: "o"}, {Content: "c"},
		{Noise: 1}, {Failing: 0.5}, {Mode: Sequential}, {Law: "l"}, {Durations: Drawn}, {Charge: Charge{Fixed: 1}},
		{Charge: Charge{Measured: true}},
		{Workers: 2}, {Trials: 2}, {Horizon: 2}, {Seed: 2}, {Version: "2"},
	} {
		key, err := s.Key()
		if err != nil {
			t.Fatal(err)
		}
		if keys[key] {
			t.Errorf("%+v has the key of another", s)
		}
		keys[key] = true
	}
}

// An interruption keeps the played runs, and the same plan continues from there.
func TestInterruptedRunsGoOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	p := small(t)
	store, err := OpenStore(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &Runner{Plan: p, Store: store, Jobs: 2, NewOptimizer: registry.New, Progress: func(now Progress) {
		if now.Done == 3 {
			cancel()
		}
	}}
	if _, err := r.Play(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, last := play(t, p, path, 2)
	if last.Kept < 3 || last.Kept == last.All || last.Done != p.Size() {
		t.Errorf("progress %+v, want at least 3 kept and all %d done", last, p.Size())
	}
}

// An optimiser's failure ends everything with an error that names the run.
func TestOptimizerThatFails(t *testing.T) {
	store, err := OpenStore(filepath.Join(t.TempDir(), "runs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := &Runner{Plan: small(t), Store: store, Jobs: 2, NewOptimizer: func(string, map[string]any) (optimizer.Optimizer, error) {
		return nil, errTest
	}}
	if _, err := r.Play(t.Context()); !errors.Is(err, errTest) {
		t.Errorf("%v, want %v", err, errTest)
	}
}

func TestVariants(t *testing.T) {
	got, err := ParseVariants([]string{"random, again=random", "sobol"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Variant{
		{Label: "random", Optimizer: "random", Settings: map[string]any{}},
		{Label: "again", Optimizer: "random", Settings: map[string]any{}},
		{Label: "sobol", Optimizer: "sobol", Settings: map[string]any{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tuned, err := ParseVariants([]string{"small=" + registry.Default + "{initial=50, priorWeight=1.5,fit=full}," + registry.Default})
	if err != nil {
		t.Fatal(err)
	}
	if err := Share(tuned, []string{"initial=99"}); err != nil {
		t.Fatal(err)
	}
	want = []Variant{
		{Label: "small", Optimizer: registry.Default, Settings: map[string]any{"initial": int64(50), "priorWeight": 1.5, "fit": "full"}},
		{Label: registry.Default, Optimizer: registry.Default, Settings: map[string]any{"initial": int64(99)}},
	}
	if diff := cmp.Diff(want, tuned); diff != "" {
		t.Errorf("with settings (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"":                 "names no optimiser",
		"nobody":           `unknown algorithm "nobody": want one of`,
		"a=b=random":       "more than one name",
		"random{":          "no closing brace",
		"random{x}":        "want key=value",
		"random{x=1}":      "this algorithm has no settings",
		"random,random":    "appears twice",
		"random,,sobol":    "names no optimiser",
		"=random":          "names no optimiser",
		"random{x=1,y=2}":  "this algorithm has no settings",
		"sobol,random{x=}": "want key=value",
	} {
		if _, err := ParseVariants([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", text, err, want)
		}
	}
	if err := Share(got, []string{"x=1"}); err == nil || !strings.Contains(err.Error(), "none of the optimisers has it") {
		t.Errorf("a setting that nobody has: %v", err)
	}
}

// A text is converted to the type of the setting's default; if that fails, the
// optimiser refuses it.
func TestTyped(t *testing.T) {
	settings := setting.Set{{Name: "int", Default: 1}, {Name: "float", Default: 1.0}, {Name: "bool", Default: false},
		{Name: "text", Default: "a"}}
	for _, tt := range []struct {
		key, text string
		want      any
	}{
		{"int", "3", int64(3)}, {"int", "x", "x"}, {"float", "3", 3.0}, {"bool", "true", true}, {"bool", "maybe", "maybe"},
		{"text", "3", "3"}, {"other", "3", "3"},
	} {
		if got := typed(settings, tt.key, tt.text); got != tt.want {
			t.Errorf("%s=%s is %#v, want %#v", tt.key, tt.text, got, tt.want)
		}
	}
}
