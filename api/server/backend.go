// Package server serves the API of package fantasiav1 over Connect, gRPC and
// gRPC-Web on one port: it translates between messages and the ledger's
// records, checks requests, and sends writes on to the leader. What it serves
// comes from a Backend.
package server

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// The errors by which a Backend says what is wrong; it wraps them with what the
// caller needs to know. Besides these, a *study.Problems is what is wrong with a
// study file. Any other error is internal: it is logged, and hidden from callers.
var (
	// ErrNotFound says that there is no such study or trial.
	ErrNotFound = errors.New("not found")
	// ErrExists says that a study of that name exists.
	ErrExists = errors.New("exists already")
	// ErrPrecondition says that the study's state forbids the change.
	ErrPrecondition = errors.New("not in the study's present state")
	// ErrUnavailable says that no leader is elected: trying again later may help.
	ErrUnavailable = errors.New("unavailable")
	// ErrEtcdAway says that etcd does not answer. It is an ErrUnavailable that lasts:
	// clients need not try again at once.
	ErrEtcdAway = errors.New("the studies cannot be read")
)

// Study is a study as the ledger has it.
type Study struct {
	Spec   record.Study
	Status record.Status
	// Best is the completed trial with the best value, nil if there is none.
	Best *record.Trial
	// Recommended is the evaluated point whose posterior mean is best, nil where
	// it is not known.
	Recommended *optimizer.Recommendation
}

// Worker is a worker as the leader knows it.
type Worker struct {
	// Heartbeat is the last one that was heard, at Seen by the leader's clock.
	Heartbeat messaging.Heartbeat
	Seen      time.Time
}

// Measurements are what one attempt of a trial has reported, by metric and step.
type Measurements struct {
	Trial, Attempt int
	Series         []curve.Series
}

// LogTail says what to read of a trial's log.
type LogTail struct {
	// Attempt is the attempt's number; 0 is the last one that a worker took.
	Attempt int
	// Streams are the outputs to read.
	Streams []messaging.LogStream
	// Lines is how many of the last lines of each output to begin with, at least 1.
	Lines int
	// Follow goes on until the attempt has ended.
	Follow bool
}

// LogPart is a part of a log, in order within its stream.
type LogPart struct {
	Attempt int
	Stream  messaging.LogStream
	Data    []byte
}

// Backend is what the API serves. A study is given by its name or its id. The
// methods are safe for concurrent use and return when their context ends; the
// records that they return are the caller's to read, not to change.
type Backend interface {
	// Studies returns up to limit studies in the order of their names, those
	// after the name given; "" is before the first.
	Studies(ctx context.Context, after string, limit int) ([]Study, error)
	Study(ctx context.Context, study string) (Study, error)
	// WatchStudy yields the study as it is and then after each change, latest
	// only where the reader is slow. It ends after a terminal state, when the
	// study is deleted, with an error, or when ctx ends (with ctx's error or none).
	WatchStudy(ctx context.Context, study string) iter.Seq2[Study, error]

	// Create reads a study file and starts its study: *study.Problems, ErrExists.
	Create(ctx context.Context, file []byte) (Study, error)
	// Update replaces the study's file: *study.Problems, ErrPrecondition where
	// the file does not fit the study.
	Update(ctx context.Context, study string, file []byte) (Study, error)
	// Stop ends the study; one that has ended stays as it is.
	Stop(ctx context.Context, study, reason string) (Study, error)
	// Delete forgets the study. ErrPrecondition where it runs and force is not set.
	Delete(ctx context.Context, study string, force bool) error

	// Trials returns up to limit trials in the order of their numbers, those
	// after the number given.
	Trials(ctx context.Context, study string, after, limit int) ([]record.Trial, error)
	Trial(ctx context.Context, study string, number int) (record.Trial, error)
	// WatchTrials yields trials after each change, in the ledger's order, after
	// those that exist where existing is set. Who reads slowly gets the latest state
	// of a trial, not each one. It ends with the study, after its
	// last change, when the study is deleted, with an error, or when ctx ends.
	WatchTrials(ctx context.Context, study string, existing bool) iter.Seq2[record.Trial, error]

	// Measurements returns the curve of a trial; without any series where its
	// program has reported nothing.
	Measurements(ctx context.Context, study string, number int) (Measurements, error)
	// WatchMeasurements yields measurements as they are stored, after those that are
	// stored already where existing is set. Some can come again. It ends once ended
	// is closed and what is stored by then has been delivered, with an error, or when
	// ctx ends.
	WatchMeasurements(ctx context.Context, study string, existing bool, ended <-chan struct{}) iter.Seq2[Measurements, error]

	// TailLogs yields the end of what a trial's program wrote: ErrNotFound where there
	// is no log, ErrUnavailable where its worker does not answer.
	TailLogs(ctx context.Context, study string, number int, o LogTail) iter.Seq2[LogPart, error]

	// Workers returns the workers that the leader knows, in any order. Only the
	// leader is asked, where there are several replicas.
	Workers(ctx context.Context) ([]Worker, error)
}
