package local

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/base/wal"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
)

// inJournal is what the journal of a Go program held when it was read.
type inJournal struct {
	path   string
	stored *journal.Stored
}

var _ source = (*inJournal)(nil)

// readJournal reads a journal. Its program may have it open.
func readJournal(path string) (*inJournal, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the state of a Go program: %w", err)
	}
	stored, err := journal.Read(content)
	if err != nil {
		return nil, &Damaged{State: path, Cause: fmt.Errorf("%s: %w", path, err), Program: true}
	}
	if stored == nil {
		return nil, fmt.Errorf("read %s: %w", path, ErrNoState)
	}
	return &inJournal{path, stored}, nil
}

// serveJournal serves the study of a journal. What its program writes later is not shown.
func serveJournal(path string) (*Connection, error) {
	j, err := readJournal(path)
	if err != nil {
		return nil, err
	}
	return connectTo(j)
}

// connectTo returns a connection to what was read.
func connectTo(from source) (*Connection, error) {
	handler, err := journalAPI(&kept{from: from}, from.place())
	if err != nil {
		return nil, err
	}
	return &Connection{Transport: httpserve.InProcess{Handler: handler}, Close: func() error { return nil }}, nil
}

// journalAPI returns the API of a backend that reads a journal.
func journalAPI(b server.Backend, path string) (http.Handler, error) {
	apiPath, handler, err := server.New(b, server.Options{ReadOnly: errJournal, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", path, err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiPath, handler)
	return mux, nil
}

// errJournal refuses changes.
var errJournal = fmt.Errorf("%w: the state of a Go program is read-only; to change the study, change the program and run it again",
	study.ErrPrecondition)

func (j *inJournal) place() string { return j.path }

func (j *inJournal) studies(context.Context) ([]ledger.Summary, error) {
	return []ledger.Summary{{Study: j.stored.Study, Status: j.stored.Status, Led: wal.InUse(j.path)}}, nil
}

func (j *inJournal) read(context.Context, string) (*display.Result, error) { return j.result() }

func (j *inJournal) result() (*display.Result, error) {
	r, _, err := resultOf(&ledger.Records{Study: j.stored.Study, Status: j.stored.Status, Model: j.stored.Model, Trials: j.stored.Trials})
	if err != nil {
		return nil, j.damaged(err)
	}
	return r, nil
}

func (j *inJournal) trial(_ context.Context, _ string, number int) (record.Trial, error) {
	return j.stored.Trials[number-1], nil // the caller has found it before
}

func (j *inJournal) curve(_ context.Context, _ string, number int) (*curve.Curve, error) {
	return j.stored.Curve(number)
}

func (j *inJournal) dirOf(*record.Attempt) (string, error) {
	return "", fmt.Errorf("%w: trials in a Go program have no logs of their own", study.ErrNotFound)
}

func (j *inJournal) damaged(err error) error {
	return &Damaged{State: j.path, Cause: fmt.Errorf("%s: %w", j.path, err), Program: true}
}
