package record_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// A record counts with about as many bytes as it has as JSON, whichever part of it is large.
func TestBytesOfTrials(t *testing.T) {
	many, labels, metrics := study.Point{}, map[string]string{}, map[string]float64{}
	for i := range 1000 {
		many[fmt.Sprintf("parameter-%d", i)] = 1 / float64(i+3)
		metrics[fmt.Sprintf("metric-%d", i)] = 1 / float64(i+7)
		labels[fmt.Sprintf("label-%d", i)] = strings.Repeat("v", 20)
	}
	long := strings.Repeat("x", 40_000)
	attempts := make([]record.Attempt, 100)
	for i := range attempts {
		attempts[i] = record.Attempt{Number: i, Nonce: strings.Repeat("0", 24), Worker: "worker-1",
			Failure: &messaging.Failure{Reason: messaging.ReasonExit, Message: strings.Repeat("y", 500)}}
	}
	for name, trial := range map[string]record.Trial{
		"point":      {Point: many},
		"suggested":  {Suggested: many},
		"metrics":    {Metrics: metrics},
		"labels":     {Labels: labels},
		"note":       {Note: long},
		"checkpoint": {Checkpoint: long},
		"request":    {RequestID: long},
		"attributes": {Attributes: map[string]any{"a": map[string]any(many), "b": []any{long, 1.5, true}}},
		"attempts":   {Attempts: attempts},
	} {
		raw, err := json.Marshal(&trial)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := float64(trial.Bytes()), float64(len(raw)); got < want*0.8 || got > want*1.6 {
			t.Errorf("%s: counted as %.0f bytes, and is %.0f", name, got, want)
		}
	}
}
