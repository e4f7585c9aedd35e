package main

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

var untraced = tracenoop.NewTracerProvider().Tracer("")

func TestLoadReadsEveryImage(t *testing.T) {
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var counts [classes]int
	for _, label := range d.y {
		counts[label]++
	}
	// The class counts that UCI states for the test set (optdigits.names).
	if want := [classes]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}; counts != want {
		t.Errorf("images by digit: %v, want %v", counts, want)
	}
}

func TestFoldsPartitionTheImages(t *testing.T) {
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	validated := 0
	for k := range folds {
		train, validation := d.fold(k, folds)
		if len(train.y)+len(validation.y) != images {
			t.Errorf("fold %d holds %d + %d images", k, len(train.y), len(validation.y))
		}
		validated += len(validation.y)
	}
	if validated != images {
		t.Errorf("the folds validate on %d images, want each of %d once", validated, images)
	}
}

// With momentum 0 and no decay, one step on one batch moves the weights against
// the gradient of the mean cross-entropy: compared with central differences.
func TestDescendFollowsTheGradient(t *testing.T) {
	const rows = 5
	for _, name := range []string{"relu", "tanh", "logistic"} {
		act, err := activationNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		h := hyperparameters{learningRate: 1, hidden: 7, batchSize: rows, activation: name}
		n := newNetwork(h, act, 3, rows)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range n.batch {
			n.batch[i] = rng.Float64()
		}
		for r := range rows {
			n.labels[r] = rng.IntN(classes)
		}
		loss := func() float64 {
			n.predict(n.batch, rows)
			sum := 0.0
			for r := range rows {
				sum -= math.Log(n.logits[r*classes+n.labels[r]])
			}
			return sum / rows
		}
		for _, l := range []*layer{n.hidden, n.output} {
			for range 20 {
				i := rng.IntN(len(l.weights))
				const step = 1e-6
				before := append([]float64(nil), l.weights...)
				l.weights[i] = before[i] + step
				up := loss()
				l.weights[i] = before[i] - step
				down := loss()
				l.weights[i] = before[i]
				hidden, output := append([]float64(nil), n.hidden.weights...), append([]float64(nil), n.output.weights...)
				n.descend(rows)
				got := before[i] - l.weights[i]
				copy(n.hidden.weights, hidden)
				copy(n.output.weights, output)
				if want := (up - down) / (2 * step); math.Abs(got-want) > 1e-6 {
					t.Errorf("%s: weight %d moves by %g, want the gradient %g", name, i, got, want)
				}
			}
		}
	}
}

func TestRunLearnsAndReportsEachEpoch(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), untraced, []string{"-epochs", "3", "-learning_rate", "0.1", "-hidden", "32"}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], `"step": 3`) {
		t.Fatalf("reported %q, want one line an epoch", lines)
	}
	if !strings.Contains(lines[2], `"error": 0.0`) {
		t.Errorf("after three epochs: %s, want an error below 10 %%: guessing has 90 %%", lines[2])
	}
}

func TestRunRefusesBadHyperparameters(t *testing.T) {
	for arg, want := range map[string]string{
		"-learning_rate=-1": "learning_rate", "-momentum=1": "momentum", "-weight_decay=-1": "weight_decay",
		"-hidden=0": "hidden", "-activation=step": "activation", "-learning_rate=NaN": "learning_rate",
	} {
		if err := run(t.Context(), untraced, []string{arg}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", arg, err, want)
		}
	}
}

// A span for loading and one for each epoch, below whatever TRACEPARENT names.
func TestTracesGoOnBelowTheParent(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	ctx, _, flush, err := tracing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := trace.SpanContextFromContext(ctx); got.SpanID().String() != "00f067aa0ba902b7" || !got.IsSampled() {
		t.Errorf("the parent is %v, want the one in TRACEPARENT", got)
	}
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	for name, args := range map[string][]string{"sound": {"-epochs", "2", "-hidden", "8"}, "broken": {"-hidden", "0"}} {
		err := traced(ctx, tracer, name, func(ctx context.Context, _ trace.Span) error {
			return run(ctx, tracer, args, &strings.Builder{})
		})
		if (err != nil) != (name == "broken") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := flush(); err != nil {
		t.Error(err)
	}
	names := map[string]int{}
	for _, span := range spans.Ended() {
		names[span.Name()]++
		if span.SpanContext().TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("%s is in another trace", span.Name())
		}
		if failed := span.Status().Code == codes.Error; failed != (span.Name() == "broken") {
			t.Errorf("%s has the status %v", span.Name(), span.Status())
		}
	}
	if names["load"] != 1 || names["epoch"] != 2 {
		t.Errorf("spans %v, want one for loading and two epochs", names)
	}
}
