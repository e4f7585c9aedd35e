package hebo

import (
	"context"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/surrogate"
)

// newFrontReplicas is newReplicas for several objectives. It probes nothing: without noise, a
// probe is one evaluation less for the front.
func (s *search) newFrontReplicas(models []*surrogate.Model) *replicas {
	noise := proposer{options: s.options}.noiseOf(models)
	if noise != surrogate.Noisy {
		return nil
	}
	return s.prepare(s.Data.Places(), noise)
}

// noiseOf returns what is known of the noise of several objectives: one of them is enough.
func (o proposer) noiseOf(models []*surrogate.Model) surrogate.Noise {
	known := surrogate.NoiseUnknown
	for _, m := range models {
		known = max(known, o.options.Noise.of(m.Data.Places()))
	}
	return known
}

// frontStrategies returns the strategies for several objectives in their order.
func (s *search) frontStrategies() []loop.Strategy {
	return []loop.Strategy{s.Score, s.exhausted(s.againOnFront), s.Best, s.replicateFront, s.PickBest}
}

// replicateFront is a strategy that evaluates a point again if that is worth as much to the front
// as the choice.
func (s *search) replicateFront(_ context.Context, t *loop.Turn) (suggestion optimizer.Suggestion, picked bool) {
	again, found := s.againOnFront(true)
	if found && (!t.Found || again.Value > t.Best.Value-indifference) {
		return s.repeat(again), true
	}
	return suggestion, false
}

// againOnFront is again for several objectives.
func (s *search) againOnFront(left bool) (best loop.Spot, ok bool) {
	if !s.mayRepeat(left) {
		return best, false
	}
	for _, spot := range s.Again() {
		busy := s.Request.Sampler.BusyAt(spot.X)
		if busy && left || math.IsNaN(spot.Value) {
			continue
		}
		if loop.Finite(spot.Value) != nil {
			spot.Acquisition = map[string]float64{"logehvi": spot.Value}
		}
		if busy {
			spot.Value -= math.MaxFloat64 / 4 // after all places that are not pending
		}
		if !ok || spot.Value > best.Value {
			best, ok = spot, true
		}
	}
	return best, ok
}
