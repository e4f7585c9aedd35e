// Package jobsidecar takes the reports of a program that runs as a Kubernetes
// Job, beside it in its pod: from a file, or over HTTP. It needs neither the
// cluster's API nor a network. What it reads it writes to its own log, a line a
// report, where the worker follows it; what came of all of it is its termination
// message, which the pod's status keeps.
package jobsidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/report"
	"github.com/fantasia-hpo/fantasia/worker/sidecar"
)

// Address is where a sidecar of a Job speaks HTTP by default: where `worker
// sidecar` does.
const Address = sidecar.DefaultAddress

const (
	// ReportFile is the name of the file for reports in Options.Dir.
	ReportFile = "reports.jsonl"
	// maxMetricsFile bounds the file of metrics, in bytes.
	maxMetricsFile = 1 << 20
)

// Options say what a sidecar reads and writes.
type Options struct {
	// Dir is the folder that it shares with the program.
	Dir string
	// Attempt is the pod's: its objective decides which value counts, and its file
	// of metrics, if any, is read at the end, in Dir.
	Attempt Attempt
	// Listen is where the program may speak HTTP; empty for nowhere.
	Listen string
	// Log is where reports go, a line each.
	Log io.Writer
	// Message is the file for the termination message.
	Message string
	// Logger is for what is wrong.
	Logger *slog.Logger
}

// Prepare makes the file for reports, which whichever user the program runs as
// may write. It is safe to repeat.
func Prepare(dir string) error {
	path := filepath.Join(dir, ReportFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("make the file for reports: %w", err)
	}
	if err := errors.Join(file.Chmod(0o666), file.Close()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("make the file for reports: %w", err)
	}
	return nil
}

// server is a sidecar while it runs. Safe for concurrent use.
type server struct {
	options Options

	mu        sync.Mutex
	collector *report.Collector
	summary   Summary
	wrong     bool // something wrong was logged
}

// Run takes reports until ctx ends, which is when the program has ended. It then
// reads what is left, and writes the termination message.
func Run(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Attempt.Assignment == nil {
		return errors.New("no attempt to take reports of")
	}
	if err := Prepare(o.Dir); err != nil {
		return err
	}
	s := &server{options: o, collector: report.NewCollector(o.Attempt.Assignment.Objective)}
	stop, err := s.serve(ctx)
	if err != nil {
		return err
	}
	t := report.NewTail(filepath.Join(o.Dir, ReportFile), func(line []byte) { s.take(report.Parse(line)) })
	t.Follow(ctx)
	err = stop()
	t.Finish()
	s.readMetrics()
	return errors.Join(err, s.conclude())
}

// take takes reports and what was wrong with others; it writes the former to the
// log, with the step that each was given.
func (s *server) take(reports []report.Report, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.complain(err.Error())
	}
	for _, r := range reports {
		if len(r.Metrics) > 0 {
			taken := s.collector.Add(r)
			r.Step = &taken.Step
			if len(taken.Ignored) > 0 {
				s.complain(taken.Ignored[0])
			}
		}
		s.summary.take(r)
		line, err := encode(r)
		if err == nil {
			_, err = s.options.Log.Write(append(line, '\n'))
		}
		if err != nil {
			s.complain("a report is not in the log: " + err.Error())
		}
	}
}

// complain logs the first thing that is wrong.
func (s *server) complain(what string) {
	if !s.wrong {
		s.wrong = true
		s.options.Logger.Warn("something about the reports is wrong; further problems are not logged", telemetry.LogReason, what)
	}
}

func (s *server) readMetrics() {
	m := s.options.Attempt.Assignment.Run.Metrics
	if m == nil || m.File == "" {
		return
	}
	metrics, err := s.parseMetrics(m.File)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.complain(err.Error())
		return
	}
	s.take([]report.Report{{Metrics: metrics}}, nil)
}

func (s *server) parseMetrics(name string) (map[string]float64, error) {
	root, err := os.OpenRoot(s.options.Dir) // a link must not lead elsewhere
	if err != nil {
		return nil, fmt.Errorf("metrics.file: %w", err)
	}
	defer func() { _ = root.Close() }()
	file, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("metrics.file: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(file, maxMetricsFile))
	if err != nil {
		return nil, fmt.Errorf("metrics.file: %w", err)
	}
	return report.ParseFile(data)
}

// conclude writes the termination message.
func (s *server) conclude() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.conclude(s.collector)
	if s.options.Message == "" {
		return nil
	}
	// The kubelet has made the file; it can be written, not replaced.
	if err := os.WriteFile(s.options.Message, s.summary.Encode(MaxMessage), 0o644); err != nil {
		return fmt.Errorf("write the termination message: %w", err)
	}
	return nil
}
