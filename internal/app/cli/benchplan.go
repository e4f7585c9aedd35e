package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/bench"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/testfunc"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

// The limits of a benchmark.
const (
	maxBenchWorkers = 1000
	maxBenchTrials  = 100_000
	maxBenchSeeds   = 10_000
)

// plan makes a plan from the flags. The error names the wrong flag.
func (f *benchFlags) plan(cmd *cobra.Command, a *app) (*bench.Plan, error) {
	if err := f.numbers(); err != nil {
		return nil, err
	}
	p := &bench.Plan{Workers: f.workers, Trials: f.trials, Version: a.benchVersion()}
	var err error
	if p.Modes, err = parseModes(f.modes); err != nil {
		return nil, fmt.Errorf("--modes: %w", err)
	}
	if p.Seeds, err = parseSeeds(f.seeds); err != nil {
		return nil, fmt.Errorf("--seeds: %w", err)
	}
	if err := f.time(p); err != nil {
		return nil, err
	}
	s, err := f.objectives(p, a)
	if err != nil {
		return nil, err
	}
	if p.Variants, err = f.variants(s); err != nil {
		return nil, fmt.Errorf("--optimizer: %w", err)
	}
	if err := bench.Share(p.Variants, f.settings); err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	if cmd.Flags().Changed("jobs") && f.jobs < 1 {
		return nil, fmt.Errorf("--jobs is %d; want 1 or more", f.jobs)
	}
	if f.jobs == 0 {
		f.jobs = runtime.GOMAXPROCS(0)
		if p.Durations == bench.Measured || p.Charge.Measured {
			f.jobs = 1 // parallel runs would distort the measurement
		}
	}
	return p, nil
}

// numbers checks the numeric flags.
func (f *benchFlags) numbers() error {
	for _, n := range []struct {
		flag            string
		value, low, top int
	}{
		{"workers", f.workers, 1, maxBenchWorkers}, {"trials", f.trials, 1, maxBenchTrials}, {"checkpoint", f.halfway, 0, f.trials},
	} {
		if n.value < n.low || n.value > n.top {
			return fmt.Errorf("--%s is %d; want %d to %d", n.flag, n.value, n.low, n.top)
		}
	}
	if !(f.noise >= 0 && f.noise <= 1e100) {
		return fmt.Errorf("--noise is %g; want a standard deviation, 0 or more", f.noise)
	}
	if !(f.failing >= 0 && f.failing < 1) {
		return fmt.Errorf("--failing is %g; want a probability, 0 or more and below 1", f.failing)
	}
	return nil
}

// checkpoint returns --checkpoint; the default is half of the trials.
func (f *benchFlags) checkpoint() int {
	if f.halfway > 0 {
		return f.halfway
	}
	return max(1, f.trials/2)
}

// time sets what the virtual clock needs.
func (f *benchFlags) time(p *bench.Plan) (err error) {
	if p.Durations, err = bench.ParseDurations(f.durations); err != nil {
		return fmt.Errorf("--durations: %w", err)
	}
	if f.evaluation <= 0 {
		return fmt.Errorf("--evaluation is %v; want a duration above 0, such as 10m", f.evaluation)
	}
	unit := f.evaluation
	if p.Durations == bench.Measured {
		if f.study == "" {
			return errors.New("--durations measured needs a program: add --study FILE")
		}
		unit = time.Second // the clock then counts seconds
	}
	if p.Charge, err = bench.ParseCharge(f.charge, unit); err != nil {
		return fmt.Errorf("--charge: %w", err)
	}
	if p.Durations == bench.Measured {
		p.Laws = []string{string(bench.Measured)}
		return nil
	}
	for _, text := range list(f.laws) {
		law, err := bench.ParseLaw(text)
		if err != nil {
			return fmt.Errorf("--law: %w", err)
		}
		if !slices.Contains(p.Laws, law.String()) {
			p.Laws = append(p.Laws, law.String())
		}
	}
	if len(p.Laws) == 0 {
		return fmt.Errorf("--law is empty; want one or more of %s", strings.Join(bench.LawNames(), ", "))
	}
	return nil
}

// objectives sets the objectives, and returns the study if --study gives one.
func (f *benchFlags) objectives(p *bench.Plan, a *app) (*study.Study, error) {
	if f.study != "" {
		if len(f.functions)+len(f.suites) > 0 || f.noise > 0 || f.failing > 0 {
			return nil, errors.New("--study cannot be combined with --function, --suite, --noise or --failing")
		}
		return f.program(p, a)
	}
	var functions []testfunc.Function
	if len(f.functions)+len(f.suites) == 0 {
		f.functions = []string{"branin", "hartmann6"}
	}
	for _, name := range f.functions {
		of, err := testfunc.Get(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("--function: %w", err)
		}
		functions = append(functions, of)
	}
	for _, name := range f.suites {
		suite, err := testfunc.Suite(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("--suite: %w", err)
		}
		functions = append(functions, suite...)
	}
	for _, of := range functions {
		if slices.ContainsFunc(p.Objectives, func(o *bench.Objective) bool { return o.Name == of.Name }) {
			continue
		}
		objective, err := bench.NewFunction(of, f.noise, f.failing)
		if err != nil {
			return nil, err
		}
		p.Objectives = append(p.Objectives, objective)
	}
	return nil, nil
}

// program makes the objective of a study file.
func (f *benchFlags) program(p *bench.Plan, a *app) (*study.Study, error) {
	s, err := readStudy(f.study)
	if err != nil {
		return nil, err
	}
	content, err := studyText(f.study)
	if err != nil {
		return nil, err
	}
	out, err := filepath.Abs(f.out)
	if err != nil {
		return nil, fmt.Errorf("find the directory for runs: %w", err)
	}
	objective, err := bench.NewProgram(s, content, filepath.Join(out, "programs"), slog.New(slog.NewTextHandler(a.Stderr, nil)))
	if err != nil {
		return nil, err
	}
	p.Objectives = []*bench.Objective{objective}
	return s, nil
}

// variants returns the optimisers of the flags. The default is the study's optimiser
// with its settings or, without a study, the default optimiser and random.
func (f *benchFlags) variants(s *study.Study) ([]bench.Variant, error) {
	switch {
	case len(f.optimizers) > 0:
		return bench.ParseVariants(f.optimizers)
	case s == nil:
		return bench.ParseVariants([]string{registry.Default, "random"})
	}
	of := s.Spec.Algorithm
	settings := map[string]any{}
	maps.Copy(settings, of.Settings)
	return []bench.Variant{{Label: of.Name, Optimizer: of.Name, Settings: settings}}, nil
}

// list splits a text at commas and drops empty parts.
func list(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func parseModes(text string) ([]bench.Mode, error) {
	var modes []bench.Mode
	for _, name := range list(text) {
		m := bench.Mode(name)
		if !slices.Contains(bench.Modes(), m) {
			return nil, fmt.Errorf("mode %q is unknown; want one or more of sequential, sync, async", name)
		}
		if !slices.Contains(modes, m) {
			modes = append(modes, m)
		}
	}
	if len(modes) == 0 {
		return nil, errors.New("no mode given; want one or more of sequential, sync, async")
	}
	return modes, nil
}

// parseSeeds reads seeds and ranges of seeds, such as 0-4,7.
func parseSeeds(text string) ([]uint64, error) {
	var seeds []uint64
	for _, part := range list(text) {
		low, high, ranged := strings.Cut(part, "-")
		from, err := strconv.ParseUint(low, 10, 64)
		to := from
		if ranged && err == nil {
			to, err = strconv.ParseUint(high, 10, 64)
		}
		if err != nil || to < from {
			return nil, fmt.Errorf("%q is not accepted; want seeds such as 7, or ranges such as 0-4", part)
		}
		if to-from >= maxBenchSeeds || uint64(len(seeds))+to-from >= maxBenchSeeds {
			return nil, fmt.Errorf("%q is too many seeds; want up to %d", part, maxBenchSeeds)
		}
		for seed := from; ; seed++ {
			if !slices.Contains(seeds, seed) {
				seeds = append(seeds, seed)
			}
			if seed == to {
				break
			}
		}
	}
	if len(seeds) == 0 {
		return nil, errors.New("no seed given; want seeds such as 7, or ranges such as 0-4")
	}
	return seeds, nil
}
