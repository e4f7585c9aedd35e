package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
	"github.com/fantasia-hpo/fantasia/worker/command"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// checked is the result of `fantasia check`.
type checked struct {
	Study      string          `json:"study"`
	Parameters view.Parameters `json:"parameters"`
	Command    []string        `json:"command"`
	Workdir    string          `json:"workdir"`
	// Try is the result of the trial; nil unless it was run.
	Try *tried `json:"try,omitempty"`
}

// tried is the result of a trial that was run.
type tried struct {
	Outcome messaging.Outcome  `json:"outcome"`
	Value   *float64           `json:"value"`
	Values  []float64          `json:"values,omitempty"`
	Metrics map[string]float64 `json:"metrics"`
	// Reports counts the reports of the program while it ran.
	Reports int64 `json:"reports"`
	// Line is the last one in which metrics.pattern was found, and Read what was read of it.
	Line    string             `json:"line,omitempty"`
	Read    map[string]float64 `json:"read,omitempty"`
	Failure *messaging.Failure `json:"failure"`
	Logs    string             `json:"logs"`
	Seconds float64            `json:"seconds"`
}

func newCheckCommand(a *app) *cobra.Command {
	var try bool
	var output format
	c := &cobra.Command{
		Use:   "check STUDY.yaml",
		Short: "Check a study file and show what its first trial runs",
		Long: `Checks a study file and shows the program and the arguments of its first trial,
or every problem of the file with its line and column. With --try it runs the
program once and shows the metrics that it reported: do this before you start a
long study. Nothing is stored.`,
		Example: `  fantasia check digits.yaml
  fantasia check digits.yaml --try`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readStudy(args[0])
			if err != nil {
				return err
			}
			if text, err := os.ReadFile(args[0]); err == nil { // not of standard input
				for _, note := range file.Elsewhere(text) {
					fmt.Fprintf(a.Stderr, "%s: %s\n", args[0], note)
				}
			}
			return a.check(cmd.Context(), s, try, output)
		},
	}
	c.Flags().BoolVar(&try, "try", false, "run the first trial and show its metrics")
	addOutput(c, &output)
	return c
}

func (a *app) check(ctx context.Context, s *study.Study, try bool, output format) error {
	if err := s.Spec.CheckEarlier(); err != nil {
		return err
	}
	assignment, err := firstTrial(ctx, s)
	if err != nil {
		return err
	}
	if s.Spec.ByClients() && try {
		return exitWith(ExitUsage, errors.New("--try needs a command, and the study has none (spec.trial.command): clients of the API "+
			"evaluate its trials"))
	}
	if s.Spec.Trial.Job != nil && try {
		return exitWith(ExitUsage, errors.New("--try needs a command, and the study's trials are Jobs of Kubernetes (spec.trial.job): apply "+
			"it to a cluster with a budget of one trial"))
	}
	argv := []string{}
	if len(s.Spec.Trial.Command) > 0 {
		argv, err = study.ExpandCommand(s.Spec.Trial.Command, assignment.ParameterOrder, assignment.Parameters, "parameters.json")
	}
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	result := checked{
		Study: s.Metadata.Name, Parameters: view.Parameters(assignment.Parameters), Command: argv, Workdir: s.Spec.Trial.Workdir,
	}
	if try {
		if result.Try, err = a.try(ctx, assignment); err != nil {
			return err
		}
	}
	err = output.write(a.Stdout, result, func(w screen) error { return result.text(w, s, assignment) })
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if try && result.Try.Outcome != messaging.OutcomeCompleted {
		return exitWith(ExitFailed, nil)
	}
	return nil
}

// firstTrial returns the first trial that a study's optimiser suggests.
func firstTrial(ctx context.Context, s *study.Study) (*messaging.Assignment, error) {
	spec := &s.Spec
	whole, err := celspace.Of(s)
	if err != nil {
		return nil, err
	}
	o, err := registry.New(spec.Algorithm.Name, spec.Algorithm.Settings)
	if err != nil {
		return nil, fmt.Errorf("create the optimiser: %w", err)
	}
	suggestions, _, err := o.Suggest(ctx, &optimizer.Problem{
		Space: whole.Searched(), Direction: spec.FirstObjective().Direction, Objectives: spec.Several, Limits: spec.Limits,
		MaxTrials:   spec.Budget.Planned(),
		Parallelism: spec.Parallelism, Seed: spec.Algorithm.Seed, First: 1,
		Earlier: optimizer.EarlierOf(spec), // those that the file only names are not looked for
	}, nil, 1, optimizer.NewRand(spec.Algorithm.Seed, 1))
	if err != nil || len(suggestions) == 0 {
		return nil, fmt.Errorf("suggest a first trial: %w", err)
	}
	point := whole.AtLevel(suggestions[0].Point, 0)
	return &messaging.Assignment{
		Version:   messaging.SchemaVersion,
		AttemptID: messaging.AttemptID{Study: record.NewID(rand.Reader, time.Now()), Trial: 1, Attempt: 1, Nonce: "check"},
		Pool:      spec.Pool, StudyName: s.Metadata.Name, Seed: engine.TrialSeed(spec.Algorithm.Seed, 1),
		Parameters: point, Objective: spec.Objective, Several: spec.Several, Limits: spec.Limits, Run: spec.Trial,
		ParameterOrder: spec.Active(point),
	}, nil
}

// try runs a trial in a directory of its own, which is kept unless the trial completed.
func (a *app) try(ctx context.Context, assignment *messaging.Assignment) (_ *tried, err error) {
	dir, err := os.MkdirTemp("", "fantasia-check-")
	if err != nil {
		return nil, fmt.Errorf("create a directory for the trial: %w", err)
	}
	evaluator, err := command.New(command.Options{
		Dir: dir, AllowStudyCommands: true, Slots: 1, Logger: slog.New(slog.NewTextHandler(a.Stderr, nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the trial: %w", err)
	}
	var reports atomic.Int64
	var matched sync.Mutex // guards result
	result := &tried{}
	if timeout := time.Duration(assignment.Run.Timeout); timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, evaluation.ErrTimeout)
		defer cancel()
	}
	start := time.Now()
	ending := evaluator.Evaluate(ctx, evaluation.Task{
		Assignment: assignment, Worker: "check",
		Measure: func(int64, map[string]float64) { reports.Add(1) },
		Matched: func(line string, read map[string]float64) {
			matched.Lock()
			defer matched.Unlock()
			result.Line = line
			result.Read, _ = report.Split(read) // JSON can hold these
		},
		Kill: make(chan struct{}),
	})
	took := time.Since(start)
	if err := evaluator.Close(ctx); err != nil {
		return nil, fmt.Errorf("stop the program: %w", err)
	}
	result.Outcome, result.Value, result.Values = ending.Outcome, view.First(ending.Values), view.Several(ending.Values)
	result.Metrics, result.Reports, result.Failure = ending.Metrics, reports.Load(), ending.Failure
	result.Logs, result.Seconds = ending.Logs, view.Seconds(took)
	if result.Metrics == nil {
		result.Metrics = map[string]float64{}
	}
	if ending.Outcome == messaging.OutcomeCompleted {
		result.Logs = ""
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("remove the trial's directory: %w", err)
		}
	}
	return result, nil
}

// text prints the result.
func (c *checked) text(w screen, s *study.Study, assignment *messaging.Assignment) error {
	spec := &s.Spec
	fields := []field{
		{Name: "Study", Value: fmt.Sprintf("%s: %s over %s, %s by %s, %d at once", c.Study, view.Aims(spec.Objectives()),
			count(len(spec.Parameters), "parameter"), budgetOf(spec), spec.Algorithm.Name, spec.Parallelism)},
		{Name: "Limits", Value: limitList(spec.Limits)},
		{Name: "Trial 1", Value: point(c.Parameters)},
	}
	if spec.ByClients() {
		return w.block(append(fields, field{Name: "Command", Value: "none: clients of the API ask for the trials and tell their values"}))
	}
	if spec.Trial.Job != nil {
		each := "trial"
		if spec.Trial.Mode == study.ModeStream {
			each = "slot of a worker"
		}
		return w.block(append(fields, field{Name: "Job", Value: "one for each " + each +
			", in the namespace of the study's resource; the coordinator checks whether that namespace may use the template"},
			field{Name: "Reads", Value: reads(spec)}))
	}
	fields = append(fields, field{Name: "Command", Words: display.Quoted(c.Command)}, field{Name: "In", Value: c.Workdir},
		field{Name: "Reads", Value: reads(spec)})
	if spec.Trial.Mode == study.ModeStream {
		line, err := json.Marshal(assignment.Parameters)
		if err != nil {
			return fmt.Errorf("write the parameters: %w", err)
		}
		fields = append(fields, field{Name: "Sends", Value: "one line a trial, such as " + string(line)})
	}
	if t := c.Try; t != nil {
		fields = append(fields, t.fields(study.MetricNames(spec.Objectives()))...)
	}
	return w.block(fields)
}

// fields describes the result of the trial.
func (t *tried) fields(objectives []string) []field {
	result := fmt.Sprintf("%s after %s", t.Outcome, human(time.Duration(t.Seconds*float64(time.Second))))
	if t.Value != nil {
		values := t.Values
		if values == nil {
			values = []float64{*t.Value}
		}
		result += ": " + view.Named(objectives, values)
	}
	fields := []field{{Name: "Result", Value: result}, {Name: "Metrics", Value: metrics(t.Metrics)}}
	if t.Reports > 0 {
		fields = append(fields, field{Name: "Reports", Value: fmt.Sprint(t.Reports)})
	}
	if t.Line != "" {
		read := metrics(t.Read)
		if read == "" {
			read = "nothing"
		}
		fields = append(fields, field{Name: "Line", Value: t.Line, Exact: true}, field{Name: "Read", Value: read})
	}
	if t.Failure != nil {
		fields = append(fields, field{Name: "Failure", Value: view.FailureText(t.Failure)})
	}
	return append(fields, field{Name: "Log", Value: t.Logs, Exact: true})
}

// count formats a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// budgetOf says how many trials a study has, how long it may take, and what it may cost.
func budgetOf(spec *study.Spec) string {
	var parts []string
	b := &spec.Budget
	if b.MaxTrials > 0 {
		parts = append(parts, count(b.MaxTrials, "trial"))
	}
	if b.OfTime() {
		parts = append(parts, b.MaxDuration.String())
	}
	if b.MaxCost > 0 {
		parts = append(parts, study.Format(b.MaxCost)+" "+spec.Cost.Metric)
	}
	if b.StopWhen.Gain > 0 {
		gain := "until more trials gain at most " + study.Format(b.StopWhen.Gain)
		switch b.StopWhen.Per {
		case study.PerHour:
			gain += " an hour"
		case study.PerCost:
			gain += " for each of the " + spec.Cost.Metric
		}
		parts = append(parts, gain)
	}
	return strings.Join(parts, ", ")
}

// limitList lists limits; "" if there are none.
func limitList(limits []study.Limit) string {
	return each.Join(limits, ", ", func(l study.Limit) string { return l.String() })
}

// reads describes where the metrics of the objectives and limits come from.
func reads(spec *study.Spec) string {
	switch m := spec.Trial.Metrics; {
	case m != nil && m.Pattern != "":
		return "named groups of " + m.Pattern + " in the program's output"
	case m != nil && m.File != "":
		return "the JSON object in " + filepath.Join("$FANTASIA_TRIAL_DIR", m.File)
	default:
		metrics := append(study.MetricNames(spec.Objectives()), spec.LimitMetrics()...)
		example := each.Join(metrics, ", ", func(metric string) string { return strconv.Quote(metric) + ": 0.5" })
		return fmt.Sprintf(`reports such as {"fantasia": {"metrics": {%s}}}`, example)
	}
}
