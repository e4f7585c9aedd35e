// Command digits is a training job to tune: it trains a small neural network on
// 1,797 images of handwritten digits and reports its cross-validated error after
// each epoch. See the README beside it for where the images come from.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
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
	if err := run(os.Args[1:], os.Stdout); err != nil {
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
func run(args []string, out io.Writer) error {
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
	all, err := load()
	if err != nil {
		return err
	}
	var (
		networks          [folds]*network
		train, validation [folds]dataset
	)
	for k := range networks {
		train[k], validation[k] = all.fold(k, folds)
		networks[k] = newNetwork(h, act, seed+uint64(k), len(validation[k].y))
	}
	for epoch := 1; epoch <= h.epochs; epoch++ {
		wrong := 0
		for k, n := range networks {
			n.epoch(train[k])
			count, ok := n.wrong(validation[k])
			if !ok {
				fmt.Fprintf(out, `{"fantasia": {"step": %d, "infeasible": "the training diverged in epoch %d"}}`+"\n", epoch, epoch)
				return nil
			}
			wrong += count
		}
		fmt.Fprintf(out, `{"fantasia": {"step": %d, "metrics": {"error": %.6f}}}`+"\n", epoch, float64(wrong)/images)
	}
	return nil
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}
