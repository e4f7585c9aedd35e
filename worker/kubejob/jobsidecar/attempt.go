package jobsidecar

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// Attempt is what a resource and its pods contain of their attempt: the assignment,
// without what only a study's own command needs.
type Attempt struct {
	Assignment  *messaging.Assignment `json:"assignment"`
	Slot        int                   `json:"slot"`
	Traceparent string                `json:"traceparent,omitempty"`
	Tracestate  string                `json:"tracestate,omitempty"`
}

// Encode encodes the attempt of an assignment; trace is the program's.
func Encode(a *messaging.Assignment, slot int, trace messaging.TraceContext) (string, error) {
	kept := *a
	kept.Run.Command, kept.Run.Env, kept.Run.Workdir = nil, nil, ""
	data, err := json.Marshal(Attempt{Assignment: &kept, Slot: slot, Traceparent: trace.Traceparent, Tracestate: trace.Tracestate})
	if err != nil {
		return "", fmt.Errorf("write the assignment: %w", err)
	}
	return string(data), nil
}

// ParseAttempt parses what Encode returned.
func ParseAttempt(text string) (*Attempt, error) {
	var a Attempt
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, fmt.Errorf("read the assignment: %w", err)
	}
	if a.Assignment == nil {
		return nil, errors.New("read the attempt: it has no assignment")
	}
	return &a, nil
}
