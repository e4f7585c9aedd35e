//go:build mutants

package engine

import (
	"errors"
	"testing"
)

// switchOff switches safety checks of an engine off.
func switchOff(e *Engine, off safety) { e.spec.off = off }

// TestSimulatorNotices switches one safety check off at a time: a simulator that does
// not notice shows nothing.
func TestSimulatorNotices(t *testing.T) {
	checks := map[string]safety{
		"nonce": safetyNonce, "terminal": safetyTerminal, "budget": safetyBudget, "claim": safetyClaim,
		"parallelism": safetyParallel, "retries": safetyRetries, "receipt": safetyReceipt,
		"duplicate": safetyDuplicate, "outbox": safetyOutbox, "repeat": safetyRepeat,
		"spoiled": safetySpoiled, "early": safetyEarly,
		"curve": safetyCurve, "recall": safetyRecall,
		"promoted": safetyPromoted, "quantile": safetyQuantile,
		"once": safetyOnce, "told": safetyTold, "pruned": safetyPruned, "finish": safetyFinish,
		"space": safetySpace, "outside": safetyOutside, "time": safetyTime, "cost": safetyCost, "gain": safetyGain,
	}
	play := map[string]func(seed uint64, off safety) *world{
		"promoted": newFidelityWorld, "quantile": newFidelityWorld, "time": newTimedWorld, "cost": newCostWorld, "gain": newGainWorld,
	}
	for name, off := range checks {
		world := play[name]
		if world == nil {
			world = newWorld
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 500; seed++ {
				if err := world(seed, off).run(); errors.Is(err, errViolation) {
					t.Logf("noticed with seed %d: %.160v", seed, err)
					return
				}
			}
			t.Errorf("500 schedules without the check %s broke nothing", name)
		})
	}
}
