package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/research/tabulated"
)

// ends is after how many random trials the times of others are predicted, and unseen of how many.
var ends = []int{2, 4, 8, 16, 32}

const unseen = 200

// reportAhead prints by which factor the expected time of a random trial is off after a few random trials, with the times of
// earlier studies and without, as the geometric mean over tables: once of the development and once of the others.
func reportAhead(ctx context.Context, w io.Writer, folder string, seeds int) error {
	sums := map[bool]map[int]*[2]float64{true: {}, false: {}}
	tables := map[bool]float64{}
	err := tabulated.Each(folder, func(t *tabulated.Table) error {
		others, err := relatives(folder, t.Name)
		if err != nil {
			return err
		}
		own := developed[t.Name]
		tables[own]++
		for seed := range seeds {
			before := earlier(t, others, seed)
			for _, n := range ends {
				if sums[own][n] == nil {
					sums[own][n] = new([2]float64)
				}
				for k, from := range [][]optimizer.Earlier{nil, before} {
					off, err := ahead(ctx, t, from, n, rand.New(rand.NewPCG(lines.Seed(t.Name, seed), uint64(n))))
					if err != nil {
						return err
					}
					sums[own][n][k] += off / float64(seeds)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "| tables | ended | off by a factor of, without earlier studies | with them |\n| --- | --- | --- | --- |")
	for _, own := range []bool{true, false} {
		for _, n := range ends {
			off := sums[own][n]
			fmt.Fprintf(w, "| %s (%.0f) | %d | %.2f | %.2f |\n", map[bool]string{true: "of the development", false: "others"}[own], tables[own], n,
				math.Exp(off[0]/tables[own]), math.Exp(off[1]/tables[own]))
		}
	}
	return nil
}

// ahead returns the mean distance of the logarithms of random trials' times from what is expected after n others: the median of the
// model or, while there is none, the mean of their logarithms.
func ahead(ctx context.Context, t *tabulated.Table, before []optimizer.Earlier, n int, rng *rand.Rand) (off float64, err error) {
	p := optimizer.Problem{Earlier: before, Seed: 1}
	var mean float64
	draw := func() (optimizer.Observation, float64) {
		row := t.Rows[rng.IntN(len(t.Rows))]
		seconds := row.Seconds[rng.IntN(len(row.Seconds))]
		return optimizer.Observation{Point: row.Point, Outcome: optimizer.OutcomeCompleted, Seconds: seconds}, math.Log(seconds)
	}
	for range n {
		o, log := draw()
		p.Observations = append(p.Observations, o)
		mean += log / float64(n)
	}
	m, err := new(duration.Medians).Of(ctx, t.Encoding, &p)
	if err != nil && !errors.Is(err, duration.ErrTooFew) {
		return 0, fmt.Errorf("%s after %d trials: %w", t.Name, n, err)
	}
	for range unseen {
		o, log := draw()
		expected := mean
		if m != nil {
			expected = m.At(o.Point)[0].Mu
		}
		off += math.Abs(expected-log) / unseen
	}
	return off, nil
}
