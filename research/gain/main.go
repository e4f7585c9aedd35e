// Command gain plays studies and compares what more trials were expected to gain with what they gained: `make gain`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/research/lines"
)

func main() { lifecycle.Main("gain", runAll) }

// parts are the tasks. The forecast's factor was chosen on the first ones, and the parts that begin with others were only looked at then.
var parts = []struct {
	name  string
	tasks []string
}{
	{"of the development", []string{
		"branin", "hartmann6", "ackley-5", "rosenbrock-5", "levy-5", "styblinski-tang-5", "griewank-5",
		"HPOBench-car", "HPOBench-vehicle", "HPOLib-naval_propulsion", "NASBench201-cifar10",
		"hartmann3", "michalewicz-5", "rastrigin-5", "dixon-price-5", "levy-10", "egg-holder", "ackley-2", "six-hump-camel",
		"HPOBench-phoneme", "HPOBench-segment", "HPOLib-slice_localization", "NASBench201-cifar100",
		"holder-table", "beale", "bukin", "drop-wave", "levy13", "shubert01", "cosine-mixture-10", "weierstrass-8", "rosenbrock-10",
		"HPOBench-kc1", "HPOBench-australian", "HPOLib-protein_structure", "NASBench201-imagenet",
	}},
	{"of the development, noisy", []string{
		"HPOBench-kc1+noise", "HPOBench-australian+noise", "HPOBench-credit_g+noise", "HPOLib-protein_structure+noise",
		"HPOLib-parkinsons_telemonitoring+noise", "NASBench201-imagenet+noise",
	}},
	{"others", []string{
		"gardner-1", "cross-in-tray", "branin02", "three-hump-camel", "griewank-2", "rastrigin-2", "styblinski-tang-10", "michalewicz-10",
		"rastrigin-10", "dixon-price-10", "exponential-8", "ackley-10", "deflected-corrugated-spring-10",
		"HPOBench-blood_transfusion", "HPOBench-credit_g", "HPOLib-parkinsons_telemonitoring",
	}},
	{"others, noisy", []string{
		"HPOBench-blood_transfusion+noise", "HPOBench-segment+noise", "HPOBench-phoneme+noise", "HPOLib-slice_localization+noise",
		"NASBench201-cifar100+noise", "NASBench201-cifar10+noise",
	}},
}

func runAll(ctx context.Context) error {
	folder := flag.String("tables", "", "the folder of the tables")
	algorithm := flag.String("algorithm", "hebo", "the algorithm")
	seeds := flag.Int("seeds", 3, "how many seeds, from 0 on")
	out := flag.String("out", "", "a file of forecasts; runs that it has are not played again")
	reports := flag.Bool("report", false, "print the table of the forecasts, and play nothing")
	flag.Parse()
	if *out == "" {
		return errors.New("-out is missing; want a file for the results")
	}
	if *reports {
		known, err := lines.Read[forecast](*out)
		if err == nil {
			report(os.Stdout, known)
		}
		return err
	}
	has, err := lines.Played(*out, (*forecast).key)
	if err != nil {
		return err
	}
	for _, part := range slices.Backward(parts) {
		for _, name := range part.tasks {
			t, err := newTask(*folder, name)
			if err != nil {
				return err
			}
			for seed := range *seeds {
				if has[(&forecast{Task: name, Algorithm: *algorithm, Seed: seed}).key()] {
					continue
				}
				list, err := play(ctx, t, *algorithm, seed)
				for i := range list {
					err = errors.Join(err, lines.Append(*out, &list[i]))
				}
				if err != nil {
					return fmt.Errorf("%s on %s with seed %d: %w", *algorithm, name, seed, err)
				}
			}
		}
	}
	return nil
}

// table returns the path of a task's table; empty if it is a function.
func table(folder, name string) string {
	name = strings.TrimSuffix(name, noise)
	if strings.HasPrefix(name, "HPO") || strings.HasPrefix(name, "NAS") {
		return filepath.Join(folder, name+".jsonl.gz")
	}
	return ""
}
