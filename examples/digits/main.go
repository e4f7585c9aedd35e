// Command digits is a training job to tune: it trains a small neural network on
// 1,797 images of handwritten digits and reports its cross-validated error after
// each epoch. See the README beside it for where the images come from.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// hyperparameters are what a study tunes.
type hyperparameters struct {
	learningRate, momentum, weightDecay float64
	hidden, batchSize, epochs           int
	activation                          string
}

const folds = 3

func main() {
	// A job that shares its machine takes only the cores that it is given.
	if n, err := strconv.Atoi(os.Getenv("OMP_NUM_THREADS")); err == nil && n > 0 {
		runtime.GOMAXPROCS(n)
	}
	ctx, tracer, flush, err := tracing(context.Background())
	if err == nil {
		err = traced(ctx, tracer, "train", func(ctx context.Context, _ trace.Span) error {
			return run(ctx, tracer, os.Args[1:], os.Stdout)
		})
		if err := flush(); err != nil { // the result does not depend on it
			fmt.Fprintln(os.Stderr, "digits: some spans are lost:", err)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}

func parse(args []string) (hyperparameters, error) {
	var h hyperparameters
	flags := flag.NewFlagSet("digits", flag.ContinueOnError)
	flags.Float64Var(&h.learningRate, "learning_rate", 0.1, "step size of stochastic gradient descent")
	flags.Float64Var(&h.momentum, "momentum", 0.9, "momentum of the descent, in [0,1)")
	flags.Float64Var(&h.weightDecay, "weight_decay", 1e-4, "L2 penalty on the weights")
	flags.IntVar(&h.hidden, "hidden", 64, "number of hidden units")
	flags.IntVar(&h.batchSize, "batch_size", 32, "images a step")
	flags.StringVar(&h.activation, "activation", "relu", "relu, tanh or logistic")
	flags.IntVar(&h.epochs, "epochs", 60, "passes over the training images")
	if err := flags.Parse(args); err != nil {
		return h, fmt.Errorf("read the flags: %w", err)
	}
	switch {
	case !(h.learningRate > 0):
		return h, fmt.Errorf("learning_rate is %v, want a positive number", h.learningRate)
	case !(h.momentum >= 0 && h.momentum < 1):
		return h, fmt.Errorf("momentum is %v, want a number in [0,1)", h.momentum)
	case !(h.weightDecay >= 0):
		return h, fmt.Errorf("weight_decay is %v, want 0 or more", h.weightDecay)
	case h.hidden < 1 || h.batchSize < 1 || h.epochs < 1:
		return h, fmt.Errorf("hidden, batch_size and epochs are %d, %d and %d, want at least 1", h.hidden, h.batchSize, h.epochs)
	}
	return h, nil
}

// run trains one network a fold, in step, and reports the share of all images
// that were misjudged by the network that had not seen them.
func run(ctx context.Context, tracer trace.Tracer, args []string, out io.Writer) error {
	h, err := parse(args)
	if err != nil {
		return err
	}
	act, err := activationNamed(h.activation)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(envOr("FANTASIA_SEED", "1"), 10, 64)
	if err != nil {
		return fmt.Errorf("FANTASIA_SEED: %w", err)
	}
	var t training
	err = traced(ctx, tracer, "load", func(context.Context, trace.Span) error { return t.load(h, act, seed) })
	if err != nil {
		return err
	}
	for epoch := 1; epoch <= h.epochs && !t.diverged; epoch++ {
		err := traced(ctx, tracer, "epoch", func(_ context.Context, span trace.Span) error {
			span.SetAttributes(attribute.Int("epoch", epoch))
			t.epoch(epoch, span, out)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// training is one network a fold.
type training struct {
	networks          [folds]*network
	train, validation [folds]dataset
	diverged          bool
}

func (t *training) load(h hyperparameters, act activation, seed uint64) error {
	all, err := load()
	if err != nil {
		return err
	}
	for k := range t.networks {
		t.train[k], t.validation[k] = all.fold(k, folds)
		t.networks[k] = newNetwork(h, act, seed+uint64(k), len(t.validation[k].y))
	}
	return nil
}

// epoch trains each network once over its images and reports the error.
func (t *training) epoch(epoch int, span trace.Span, out io.Writer) {
	wrong := 0
	for k, n := range t.networks {
		n.epoch(t.train[k])
		count, ok := n.wrong(t.validation[k])
		if !ok {
			t.diverged = true
			fmt.Fprintf(out, `{"fantasia": {"step": %d, "infeasible": "the training diverged in epoch %d"}}`+"\n", epoch, epoch)
			return
		}
		wrong += count
	}
	value := float64(wrong) / images
	span.SetAttributes(attribute.Float64("error", value))
	fmt.Fprintf(out, `{"fantasia": {"step": %d, "metrics": {"error": %.6f}}}`+"\n", epoch, value)
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}
