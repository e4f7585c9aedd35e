//go:build mutants

package engine

import (
	"errors"
	"testing"
)

// switchOff switches guards of an engine off.
func switchOff(e *Engine, off guard) { e.off = off }

// TestSimulatorNotices switches one guard off at a time: a simulator that does
// not notice shows nothing.
func TestSimulatorNotices(t *testing.T) {
	guards := map[string]guard{
		"nonce": guardNonce, "terminal": guardTerminal, "budget": guardBudget, "claim": guardClaim,
		"parallelism": guardParallel, "retries": guardRetries, "receipt": guardReceipt,
		"duplicate": guardDuplicate, "outbox": guardOutbox, "repeat": guardRepeat,
		"spoiled": guardSpoiled, "early": guardEarly,
		"curve": guardCurve, "recall": guardRecall,
		"once": guardOnce, "told": guardTold, "pruned": guardPruned,
	}
	for name, off := range guards {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 500; seed++ {
				if err := newWorld(seed, off).run(); errors.Is(err, errViolation) {
					t.Logf("noticed with seed %d: %.160v", seed, err)
					return
				}
			}
			t.Errorf("500 schedules without the %s guard broke nothing", name)
		})
	}
}
