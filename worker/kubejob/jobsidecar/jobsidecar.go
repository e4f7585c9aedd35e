// Package jobsidecar takes the reports of a program that runs as a Kubernetes Job, in
// the same pod, from a file or over HTTP. It needs neither the cluster's API nor a
// network. It writes reports to its own log, one a line, where the worker follows them,
// and a summary to its termination message, which the pod's status keeps.
package jobsidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
	"github.com/fantasia-hpo/fantasia/worker/report/tfevent"
	"github.com/fantasia-hpo/fantasia/worker/sidecar"
)

// Address is the default HTTP address of a Job's sidecar, the same as that of `worker
// sidecar`.
const Address = sidecar.DefaultAddress

// ReportFile is the name of the file for reports in Options.Dir.
const ReportFile = "reports.jsonl"

// Options configure what a sidecar reads and writes.
type Options struct {
	// Dir is the directory shared with the program.
	Dir string
	// Events is the folder of the attempt's event files, if it has metrics.events.
	Events string
	// Attempt is the pod's attempt: its objective decides which value counts, and its
	// metrics file, if any, is read from Dir at the end.
	Attempt Attempt
	// Listen is the HTTP address for the program; empty for none.
	Listen string
	// Log receives the reports, one a line.
	Log io.Writer
	// Message is the path of the termination message.
	Message string
	// Logger receives warnings.
	Logger *slog.Logger
}

// Prepare creates the file for reports, writable by any user. It can be repeated.
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

// server is a running sidecar. It is safe for concurrent use.
type server struct {
	options Options

	mu        sync.Mutex
	collector *report.Collector
	summary   Summary
	wrong     bool // a problem was logged
}

// Run takes reports until ctx ends, which means that the program has ended. It then
// reads the rest and writes the termination message.
func Run(ctx context.Context, o Options) error {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Attempt.Assignment == nil {
		return errors.New("no attempt is given")
	}
	if err := Prepare(o.Dir); err != nil {
		return err
	}
	s := &server{options: o, collector: report.NewCollector(o.Attempt.Assignment.Objectives(), o.Attempt.Assignment.LimitMetrics()...)}
	stop, err := s.serve(ctx)
	if err != nil {
		return err
	}
	t := report.NewTail(filepath.Join(o.Dir, ReportFile), func(line report.Line) { s.addReports(line.Read("the report file", report.Parse)) })
	finishEvents, finishFile := s.followEvents(ctx), s.followFile(ctx)
	t.Follow(ctx)
	err = stop()
	t.Finish()
	finishEvents()
	finishFile()
	return errors.Join(err, s.conclude())
}

// followEvents reads event files until the caller calls finish, after ctx has ended. That reads the rest.
func (s *server) followEvents(ctx context.Context) (finish func()) {
	a := s.options.Attempt.Assignment
	if a.Run.Metrics == nil || a.Run.Metrics.Events == "" {
		return func() {}
	}
	events := tfevent.NewFolder(s.options.Events, a.MetricNames(), s.addReports)
	var running sync.WaitGroup
	running.Go(func() { events.Follow(ctx) })
	return func() {
		running.Wait()
		if err := events.Finish(); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.complain("no metrics.events: " + err.Error())
		}
	}
}

// addReports takes reports and errors of unreadable ones. It writes the reports to the log,
// each with its step.
func (s *server) addReports(reports []report.Report, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.complain(err.Error())
	}
	for _, r := range reports {
		if len(r.Metrics)+len(r.Unreadable) > 0 {
			taken := s.collector.Add(r)
			r.Step = &taken.Step
			if metric, why := s.collector.Unread(); len(r.Unreadable) > 0 && why != "" {
				r.Unreadable = map[string]string{metric: why}
			}
			if len(taken.Ignored) > 0 {
				s.complain(taken.Ignored[0])
			}
			s.summary.Warning = cmp.Or(s.summary.Warning, evaluation.Bounded(taken.Warning, 256))
		}
		s.summary.addReport(r)
		line, err := encode(r)
		if err == nil {
			_, err = s.options.Log.Write(append(line, '\n'))
		}
		if err != nil {
			s.complain("cannot log a report: " + err.Error())
		}
	}
}

// complain logs the first problem.
func (s *server) complain(what string) {
	if !s.wrong {
		s.wrong = true
		s.options.Logger.Warn("a problem with reports; further ones are not logged", telemetry.LogReason, what)
	}
}

// followFile reads metrics.file until the caller calls finish, after ctx has ended. That reads the rest.
func (s *server) followFile(ctx context.Context) (finish func()) {
	file := s.file()
	if file == nil {
		return func() {}
	}
	var running sync.WaitGroup
	running.Go(func() { file.Follow(ctx) })
	return func() {
		running.Wait()
		if err := file.Finish(); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.complain(err.Error())
		}
	}
}

// file returns the reader of metrics.file; nil if there is none.
func (s *server) file() *report.File {
	m := s.options.Attempt.Assignment.Run.Metrics
	if m == nil || m.File == "" {
		return nil
	}
	open := func() (*os.File, error) {
		root, err := os.OpenRoot(s.options.Dir) // a link must not lead outside
		if err != nil {
			return nil, fmt.Errorf("metrics.file: %w", err)
		}
		defer func() { _ = root.Close() }()
		file, err := root.OpenFile(m.File, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, fmt.Errorf("metrics.file: %w", err)
		}
		return file, nil
	}
	return report.NewFile(m.File, open, func(r report.Report) { s.addReports([]report.Report{r}, nil) }, s.warn)
}

// warn keeps the first warning for the people who look at the trial.
func (s *server) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.Warning = cmp.Or(s.summary.Warning, evaluation.Bounded(text, 256))
	s.complain(text)
}

// conclude writes the termination message.
func (s *server) conclude() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summary.conclude(s.collector)
	if s.options.Message == "" {
		return nil
	}
	// The kubelet has created the file, which can be written but not replaced.
	if err := os.WriteFile(s.options.Message, s.summary.Encode(MaxMessage), 0o644); err != nil {
		return fmt.Errorf("write the termination message: %w", err)
	}
	return nil
}
