package backoff_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// TestPauses checks the bounds of each pause, that pauses differ although their bounds do
// not, and that virtual time gives the same ones again.
func TestPauses(t *testing.T) {
	play := func() (pauses []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			b := backoff.New(100*time.Millisecond, time.Second)
			wait := func(most time.Duration) {
				began := time.Now()
				if !b.Wait(t.Context()) {
					t.Fatal("a wait was cut off")
				}
				pause := time.Since(began)
				if pause < most/2 || pause > most {
					t.Errorf("a pause of %v, want %v to %v", pause, most/2, most)
				}
				pauses = append(pauses, pause)
			}
			for _, most := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
				wait(most * time.Millisecond)
			}
			b.Reset()
			wait(100 * time.Millisecond)
		})
		return pauses
	}
	pauses := play()
	if again := play(); !slices.Equal(again, pauses) {
		t.Errorf("pauses of %v, and again %v", pauses, again)
	}
	if pauses[4] == pauses[5] && pauses[5] == pauses[6] {
		t.Errorf("the pauses %v have no random share", pauses)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if backoff.New(time.Hour, time.Hour).Wait(ctx) {
		t.Error("waited for an hour")
	}
}
