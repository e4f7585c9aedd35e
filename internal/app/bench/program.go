package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
	"github.com/fantasia-hpo/fantasia/worker/command"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// NewProgram makes an objective of a study's program; each run starts its own copy. The
// study's working directory MUST be an absolute path; content is the study's file. The
// programs' files are kept below dir while they run, and afterwards if an evaluation
// failed. logger gets warnings about programs.
func NewProgram(s *study.Study, content []byte, dir string, logger *slog.Logger) (*Objective, error) {
	space, err := celspace.Of(s)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(content)
	var opened atomic.Int64
	return &Objective{
		Name: s.Metadata.Name, Space: space, Direction: s.Spec.FirstObjective().Direction, Noisy: true,
		Content: hex.EncodeToString(digest[:8]),
		open: func() (evaluator, error) {
			return newProgram(s, dir, strconv.FormatInt(opened.Add(1), 10), logger)
		},
	}, nil
}

// program evaluates points like a worker's slot.
type program struct {
	study  *study.Study
	id     string
	dir    string
	of     evaluation.Evaluator
	failed bool
}

func newProgram(s *study.Study, dir, id string, logger *slog.Logger) (*program, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make a folder for the program: %w", err)
	}
	own, err := os.MkdirTemp(dir, "run-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the program: %w", err)
	}
	of, err := command.New(command.Options{Dir: own, AllowStudyCommands: true, Slots: 1, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("prepare the program: %w", err)
	}
	return &program{study: s, id: "bench-" + id, dir: own, of: of}, nil
}

// assignment returns the assignment of a trial's only attempt. The program's seed is
// the one that the trial would have in a study with the run's seed.
func (p *program) assignment(seed uint64, trial int, point study.Point) *messaging.Assignment {
	spec := &p.study.Spec
	return &messaging.Assignment{
		Version:   messaging.SchemaVersion,
		AttemptID: messaging.AttemptID{Study: p.id, Trial: trial, Attempt: 1, Nonce: "bench"},
		Pool:      spec.Pool, StudyName: p.study.Metadata.Name, Seed: engine.TrialSeed(seed, trial),
		Parameters: point, ParameterOrder: spec.Active(point), Objective: spec.Objective, Several: spec.Several, Limits: spec.Limits,
		Run: spec.Trial,
	}
}

func (p *program) evaluate(ctx context.Context, seed uint64, trial int, point study.Point) (outcome, error) {
	running := ctx
	if timeout := time.Duration(p.study.Spec.Trial.Timeout); timeout > 0 {
		var cancel context.CancelFunc
		running, cancel = context.WithTimeoutCause(ctx, timeout, evaluation.ErrTimeout)
		defer cancel()
	}
	start := time.Now()
	ending := p.of.Evaluate(running, evaluation.Task{
		Assignment: p.assignment(seed, trial, point), Worker: "bench",
		Measure: func(int64, map[string]float64) {}, Kill: make(chan struct{}),
	})
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	o := outcome{kind: optimizer.OutcomeFailed, seconds: time.Since(start).Seconds()}
	if ending.Failure != nil {
		o.message = ending.Failure.Message
	}
	switch {
	case ending.Outcome == messaging.OutcomeCompleted && len(ending.Values) > 0:
		o.kind, o.value, o.truth = optimizer.OutcomeCompleted, ending.Values.First(), ending.Values.First()
	case ending.Outcome == messaging.OutcomeInfeasible:
		o.kind = optimizer.OutcomeInfeasible
	default:
		p.failed = true
		if ending.Logs != "" && !strings.Contains(o.message, ending.Logs) {
			o.message += "; see " + ending.Logs
		}
	}
	return o, nil
}

// close ends the program; its files are kept if an evaluation failed.
func (p *program) close(ctx context.Context) error {
	if err := p.of.Close(ctx); err != nil {
		return fmt.Errorf("end the program: %w", err)
	}
	if p.failed {
		return nil
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the program's files: %w", err)
	}
	return nil
}
