package report

import (
	"maps"
	"math"
	"strings"
	"testing"
)

// Lines as people and libraries print them, with the value that a pattern must read from them.
func TestGuess(t *testing.T) {
	tests := []struct {
		name, output string
		metrics      []string
		want         []float64 // nil: nothing can be guessed
	}{
		{"equals", "loss=0.25\n", []string{"loss"}, []float64{0.25}},
		{"last", "epoch 1 loss=0.5\nepoch 2 loss=0.25\ndone\n", []string{"loss"}, []float64{0.25}},
		{"words", "Val Loss : 0.25,", []string{"val_loss"}, []float64{0.25}},
		{"other case", "Accuracy: 93.1%", []string{"accuracy"}, []float64{93.1}},
		{"spaces", "accuracy    0.93   1000", []string{"accuracy"}, []float64{0.93}},
		{"other metrics whose names end alike", "val_loss=0.5 train/loss=0.4 loss=0.25", []string{"loss"}, []float64{0.25}},
		{"Keras", "32/32 - 1s - loss: 0.1 - val_loss: 0.25 - val_accuracy: 0.9", []string{"val_loss"}, []float64{0.25}},
		{"Lightning", "│         val/acc           │     0.9312      │\nval/acc 0.9312", []string{"val/acc"}, []float64{0.9312}},
		{"dictionary", "{'loss': 0.25, 'other': 1}", []string{"loss"}, []float64{0.25}},
		{"JSON", `{"loss":0.25,"other":1}`, []string{"loss"}, []float64{0.25}},
		{"NaN", "loss=nan", []string{"loss"}, []float64{math.NaN()}},
		{"tensor", "loss: tensor(0.25)", []string{"loss"}, []float64{0.25}},
		{"colours", "\x1b[1mloss\x1b[0m=\x1b[32m0.25\x1b[0m", []string{"loss"}, []float64{0.25}},
		{"two on a line", "accuracy=0.5 latency=3.5", []string{"accuracy", "latency"}, []float64{0.5, 3.5}},
		{"two on two lines", "latency: 3.5\naccuracy: 0.5", []string{"accuracy", "latency"}, []float64{0.5, 3.5}},
		{"one of two", "accuracy=0.5", []string{"accuracy", "latency"}, nil},
		{"a word", "loss is small", []string{"loss"}, nil},
		{"no number", "loss=small", []string{"loss"}, nil},
		{"part of a word", "lossy=0.5", []string{"loss"}, nil},
		{"nothing", "", []string{"loss"}, nil},
		{"a metric without letters", "0.5", []string{"%"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expr, found := Guess(tt.output, tt.metrics...)
			if (expr == "") != (tt.want == nil) || (found == "") != (expr == "") {
				t.Fatalf("guessed %q for %q", expr, found)
			}
			if tt.want == nil {
				return
			}
			pattern, err := NewPattern(expr, tt.metrics...)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for line := range strings.Lines(tt.output) {
				reports, err := pattern.Find([]byte(line))
				if err != nil {
					t.Errorf("%s: %v", expr, err)
				}
				for _, r := range reports {
					maps.Copy(got, r.Metrics)
				}
			}
			for i, m := range tt.metrics {
				if got[m] != tt.want[i] && !(math.IsNaN(got[m]) && math.IsNaN(tt.want[i])) {
					t.Errorf("%s reads %s = %v, want %v", expr, m, got[m], tt.want[i])
				}
			}
		})
	}
}

func TestAdvice(t *testing.T) {
	const want = `; "loss': 0.25}" can be read with spec.trial.metrics: {pattern: '\bloss'':\s+(?P<loss>[^\s,;%|│]+)'}`
	if got := Advice("{'loss': 0.25}", "loss"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Advice("done", "loss"); got != "" {
		t.Errorf("got %s", got)
	}
}
