package hebo

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/gp"
)

func TestMemory(t *testing.T) {
	h := gp.Hyperparameters{Kernel: []float64{0.1, -2.5, 1.0 / 3}, Noise: 1e-4}
	m := readMemory(nil, 3)
	m.Cursor, m.Escapes = 17, 5
	m.remember(h)
	back := readMemory(m.state(), 3)
	if diff := cmp.Diff(m, back); diff != "" {
		t.Errorf("a memory and what is read of its state (-want +got):\n%s", diff)
	}
	if other := readMemory(m.state(), 4); other.Fitted != nil || other.Cursor != 0 {
		t.Errorf("the memory of another space is read as %+v", other)
	}
	if other := readMemory(optimizer.State(`{"version": 1, "cursor": 17, "escapes": -1}`), 3); other.Escapes != 0 || other.Cursor != 0 {
		t.Errorf("a memory of less than no escapes is read as %+v", other)
	}
	for _, noise := range []float64{math.NaN(), math.Inf(1)} {
		m.Fitted.Noise = noise
		if state := m.state(); state != nil {
			t.Errorf("noise %v is kept in the state %s", noise, state)
		}
	}
	m.remember(gp.Hyperparameters{Kernel: make([]float64, 5000), Noise: 1})
	if m.Fitted != nil {
		t.Error("hyperparameters that fit into no state are kept")
	}
	long := gp.Hyperparameters{Noise: math.Nextafter(1e-300, 1)}
	for m.remember(long); m.Fitted != nil; m.remember(long) {
		if n := len(m.state()); n > optimizer.MaxStateSize {
			t.Fatalf("%d hyperparameters make a state of %d bytes", len(long.Kernel), n)
		}
		for range 500 {
			long.Kernel = append(long.Kernel, -math.Nextafter(1e-300, 1))
		}
	}
}
