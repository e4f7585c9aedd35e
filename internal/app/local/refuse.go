package local

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// readOnly refuses the calls of those who evaluate trials themselves.
type readOnly struct{}

var _ server.Clients = readOnly{}

// Suggest implements server.Clients.
func (readOnly) Suggest(context.Context, string, string, int, time.Duration) (server.Suggestions, error) {
	return server.Suggestions{}, errReadOnly
}

// Heartbeat implements server.Clients.
func (readOnly) Heartbeat(context.Context, string, string, []server.Held) ([]server.Instruction, error) {
	return nil, errReadOnly
}

// AddMeasurement implements server.Clients.
func (readOnly) AddMeasurement(context.Context, string, string, server.Reached) (server.Instruction, error) {
	return server.Instruction{}, errReadOnly
}

// End implements server.Clients.
func (readOnly) End(context.Context, string, string, server.Ending) (record.Trial, error) {
	return record.Trial{}, errReadOnly
}

// Enqueue implements server.Clients.
func (readOnly) Enqueue(context.Context, string, study.Point, string, server.Remarks) (record.Trial, error) {
	return record.Trial{}, errReadOnly
}

// Add implements server.Clients.
func (readOnly) Add(context.Context, string, server.Finished, string) (record.Trial, error) {
	return record.Trial{}, errReadOnly
}

// CancelTrial implements server.Clients.
func (readOnly) CancelTrial(context.Context, string, int, string) (record.Trial, error) {
	return record.Trial{}, errReadOnly
}

// EditTrial implements server.Clients.
func (readOnly) EditTrial(context.Context, string, server.Edit) (record.Trial, error) {
	return record.Trial{}, errReadOnly
}
