//go:debug randseednop=0

// Command goptuna lets the samplers of goptuna answer research/benchmarks/methods.py. It reads lines
// of JSON: {"sampler": "tpe", "seed": 1, "ranges": [[0, 1], ...]} first, then {"ask": 8} and
// {"tell": [0.5, ...]}, the values of the points that were asked for last, in their order. It answers
// {"points": [[0.5, ...], ...]}, and {} to what it is told.
//
// It is a module of its own, so that nobody else downloads goptuna.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"os"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/cmaes"
	"github.com/c-bata/goptuna/tpe"
)

// request is a line of the input.
type request struct {
	Sampler string       `json:"sampler"`
	Seed    int64        `json:"seed"`
	Ranges  [][2]float64 `json:"ranges"`
	Ask     int          `json:"ask"`
	Tell    []float64    `json:"tell"`
}

func main() {
	log.SetFlags(0)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func serve(in io.Reader, out io.Writer) error {
	lines, answers := json.NewDecoder(in), json.NewEncoder(out)
	var first request
	if err := lines.Decode(&first); err != nil {
		return err
	}
	p, err := newPlayer(first)
	if err != nil {
		return err
	}
	for {
		var r request
		if err := lines.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var answer struct {
			Points [][]float64 `json:"points,omitempty"`
		}
		if answer.Points, err = p.play(r); err != nil {
			return err
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}

// player is a study of goptuna. Its API has no ask and tell, so each open trial is a goroutine in
// the objective. They go on one at a time: the same requests get the same answers.
type player struct {
	study  *goptuna.Study
	ranges [][2]float64
	open   []trial // asked for, in order
}

// trial is a trial of which the point is known and the value is not.
type trial struct {
	value chan float64
	ended chan error
}

// newPlayer begins a study with a sampler's defaults.
func newPlayer(first request) (*player, error) {
	rand.Seed(first.Seed) // tpe also draws from the global source
	options := []goptuna.StudyOption{goptuna.StudyOptionLogger(nil)}
	switch first.Sampler {
	case "tpe":
		options = append(options, goptuna.StudyOptionSampler(tpe.NewSampler(tpe.SamplerOptionSeed(first.Seed))))
	case "cmaes", "cmaes-bipop":
		sampler := []cmaes.SamplerOption{cmaes.SamplerOptionSeed(first.Seed)}
		if first.Sampler == "cmaes-bipop" {
			sampler = append(sampler, cmaes.SamplerOptionBIPop(2))
		}
		options = append(options, goptuna.StudyOptionRelativeSampler(cmaes.NewSampler(sampler...)),
			goptuna.StudyOptionSampler(goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(first.Seed))))
	default:
		return nil, fmt.Errorf("sampler %q: expected tpe, cmaes or cmaes-bipop", first.Sampler)
	}
	study, err := goptuna.CreateStudy("benchmark", options...)
	return &player{study: study, ranges: first.Ranges}, err
}

// play asks for points, or tells the values of those that are open.
func (p *player) play(r request) (points [][]float64, err error) {
	for range r.Ask {
		x, err := p.ask()
		if err != nil {
			return nil, err
		}
		points = append(points, x)
	}
	if len(r.Tell) > len(p.open) {
		return nil, fmt.Errorf("told %d values, only %d trials are open", len(r.Tell), len(p.open))
	}
	for i, value := range r.Tell {
		p.open[i].value <- value
		if err := <-p.open[i].ended; err != nil {
			return nil, err
		}
	}
	p.open = p.open[len(r.Tell):]
	return points, nil
}

// ask begins a trial, and waits for its point.
func (p *player) ask() ([]float64, error) {
	t := trial{value: make(chan float64), ended: make(chan error, 1)}
	asked := make(chan []float64, 1)
	go func() {
		t.ended <- p.study.Optimize(func(of goptuna.Trial) (float64, error) {
			x := make([]float64, len(p.ranges))
			for i, r := range p.ranges {
				v, err := of.SuggestFloat(fmt.Sprintf("p%d", i), r[0], r[1])
				if err != nil {
					return 0, err
				}
				x[i] = v
			}
			asked <- x
			return <-t.value, nil
		}, 1)
	}()
	select {
	case x := <-asked:
		p.open = append(p.open, t)
		return x, nil
	case err := <-t.ended:
		return nil, fmt.Errorf("no point: %w", err)
	}
}
