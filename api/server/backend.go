// Package server serves the API of package fantasiav1 over Connect, gRPC and gRPC-Web
// on one port. It validates requests, translates between messages and the ledger's
// records, and forwards writes to the leader. A Backend provides the data.
package server

import (
	"context"
	"iter"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Study is a study as stored in the ledger.
type Study struct {
	Spec   record.Study
	Status record.Status
	// Best is the completed trial with the best value; nil if there is none.
	Best *record.Trial
	// Recommended is the evaluated point whose posterior mean is best; nil if it is
	// not known.
	Recommended *optimizer.Recommendation
}

// Backend provides the data that the API serves. A backend that refuses every change need
// not have a Writer: see Options.ReadOnly.
type Backend interface {
	Reader
	Writer
}

// Reader shows studies. Its methods accept a study's name or id, are safe for concurrent
// use, and return when their context ends. Callers MUST NOT change the returned records.
//
// Errors are of the kinds of package study, whose texts a caller sees. Any other error is
// internal: the server logs it and hides it from callers.
type Reader interface {
	Lists
	StudyReader
}

// Lists is the part of a Reader that is about no single study. Restrict limits each of its methods.
type Lists interface {
	// Studies returns the heads of up to limit studies by name (study.Study.Head), starting
	// after the name given; "" starts with the first one.
	Studies(ctx context.Context, after string, limit int) ([]Study, error)
	// Archived returns the studies in the archive, in any order. Errors: ErrPrecondition if
	// there is no archive.
	Archived(ctx context.Context) ([]archive.Entry, error)
	// Used returns, for each share, how much of its studies, bytes and open trials is in use.
	// If there are several replicas, only the leader's is called.
	Used(ctx context.Context, shares []quota.Share) ([]quota.Use, error)
	// Workers returns the workers that the leader knows, in any order. If there are
	// several replicas, only the leader's is called.
	Workers(ctx context.Context) ([]coordinator.Worker, error)
}

// StudyReader is the part of a Reader that is about one study. What a token may read of it is
// decided before it is called.
type StudyReader interface {
	Study(ctx context.Context, study string) (Study, error)
	// Name returns a study's name. What it costs does not grow with the study.
	Name(ctx context.Context, study string) (string, error)
	// WatchStudy yields the head of the current study and then of the study after each change. A
	// slow reader gets only the latest state. It ends after a terminal state, when
	// the study is deleted, with an error, or when ctx ends (with ctx's error or none).
	WatchStudy(ctx context.Context, study string) iter.Seq2[Study, error]

	// Trials returns up to limit trials by number, starting after the number given.
	Trials(ctx context.Context, study string, after, limit int) ([]record.Trial, error)
	Trial(ctx context.Context, study string, number int) (record.Trial, error)
	// WatchTrials yields trials after each change, in the ledger's order. If existing
	// is set, it first yields the existing trials. A slow reader gets only the latest
	// state of a trial. It ends after the last change of an ended study, when the
	// study is deleted, with an error, or when ctx ends.
	WatchTrials(ctx context.Context, study string, existing bool) iter.Seq2[record.Trial, error]

	// Measurements returns the curve of a trial. It has no series if the program has
	// reported nothing.
	Measurements(ctx context.Context, study string, number int) (curve.Reported, error)
	// WatchMeasurements yields measurements as they are stored. If existing is set, it
	// first yields those already stored. It may yield a measurement more than once. It
	// ends when ended is closed and all measurements stored by then have been
	// delivered, with an error, or when ctx ends.
	WatchMeasurements(ctx context.Context, study string, existing bool, ended <-chan struct{}) iter.Seq2[curve.Reported, error]

	// TailLogs yields the end of a trial's output. Errors: ErrNotFound if there is no
	// log, ErrUnavailable if its worker does not answer.
	TailLogs(ctx context.Context, study string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error]
}

// Writer changes studies. What is said of a Reader holds for it as well. If there are several
// replicas, only the leader's is called.
type Writer interface {
	// Create reads a study file and starts its study. Errors: *study.Problems,
	// ErrExists.
	Create(ctx context.Context, file []byte) (Study, error)
	// Update replaces the study's file. Errors: *study.Problems; ErrPrecondition if
	// the file is not compatible with the study.
	Update(ctx context.Context, study string, file []byte, version int) (Study, error)
	// Annotate sets attributes of the study, or removes those that are nil; others stay. Errors:
	// *study.Problems.
	Annotate(ctx context.Context, study string, attributes map[string]any) (Study, error)
	// Stop ends the study. Stopping a study that has ended changes nothing.
	Stop(ctx context.Context, study, reason string) (Study, error)
	// Resume continues a study that has ended, in spite of the trials that have failed by then. Resuming a
	// study that runs changes nothing. Errors: ErrPrecondition if something else ends the study.
	Resume(ctx context.Context, study string) (Study, error)
	// Delete deletes the study. Errors: ErrPrecondition if it is running and force is
	// not set.
	Delete(ctx context.Context, study string, force bool) error
	// Archive moves an ended study to the archive. Errors: ErrPrecondition if it cannot be
	// archived, or there is no archive; ErrBusy.
	Archive(ctx context.Context, study string) (archive.Entry, error)
	// Unarchive moves a study back from the archive. Errors: ErrNotFound, ErrExists if its
	// name was given to another study; ErrPrecondition; ErrBusy.
	Unarchive(ctx context.Context, study string) (Study, error)

	Clients
}

// Clients is the part of a Writer that serves those who evaluate a study's trials
// themselves, and those who say something of a trial.
type Clients interface {
	// Suggest waits until the client holds count trials of the study, at most for wait.
	// The error wraps ErrBusy if too many calls wait.
	Suggest(ctx context.Context, study, client string, count int, wait time.Duration) (coordinator.Suggestions, error)
	// Heartbeat renews the client's leases, and says what to do with each trial.
	Heartbeat(ctx context.Context, study, client string, held []coordinator.HeldAttempt) ([]engine.Instruction, error)
	// Measure stores a measurement, and says what to do with its trial.
	Measure(ctx context.Context, study, client string, held coordinator.HeldAttempt, reports []coordinator.Report) (engine.Instruction, error)
	// Tell applies an event and returns the trial that it is about.
	Tell(ctx context.Context, study string, event func(now time.Time) engine.Event) (record.Trial, error)
}
