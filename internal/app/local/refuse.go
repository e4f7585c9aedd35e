package local

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// readOnly refuses the calls of those who evaluate trials themselves.
type readOnly struct{}

var _ server.Clients = readOnly{}

// Suggest implements server.Clients.
func (readOnly) Suggest(context.Context, string, string, int, time.Duration) (coordinator.Suggestions, error) {
	return coordinator.Suggestions{}, errReadOnly
}

// Heartbeat implements server.Clients.
func (readOnly) Heartbeat(context.Context, string, string, []coordinator.Held) ([]coordinator.Instruction, error) {
	return nil, errReadOnly
}

// Measure implements server.Clients.
func (readOnly) Measure(context.Context, string, string, coordinator.Held, int64, map[string]float64) (coordinator.Instruction, error) {
	return coordinator.Instruction{}, errReadOnly
}

// Tell implements server.Clients.
func (readOnly) Tell(context.Context, string, func(time.Time) engine.Event) (record.Trial, error) {
	return record.Trial{}, errReadOnly
}
