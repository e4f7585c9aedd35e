package uhe

import (
	"encoding/json"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
)

// memoryVersion changes when the meaning of a memory changes.
const memoryVersion = 1

// memory is the optimiser's state.
type memory struct {
	Version int `json:"version"`
	loop.Design
	Method Method `json:"method"`
	Bandit bandit `json:"bandit"`
	Growth growth `json:"growth,omitzero"`
	// Fitted are the hyperparameters that the next fit, or the chain, starts from; nil
	// before the first.
	Fitted *gp.Hyperparameters `json:"fitted,omitempty"`
}

// readMemory returns the memory in a state, or a fresh one if the state has another
// version, method, or number of kernel hyperparameters.
func readMemory(state optimizer.State, method Method, params int) *memory {
	fresh := &memory{Version: memoryVersion, Method: method}
	var m memory
	if json.Unmarshal(state, &m) != nil || m.Version != memoryVersion || m.Method != method || m.Cursor > math.MaxUint32 {
		return fresh
	}
	if h := m.Fitted; h != nil && (len(h.Kernel) != params || !(h.Noise > 0)) || !m.Bandit.valid() || !m.Growth.valid() {
		return fresh
	}
	return &m
}

// valid reports whether a bandit's numbers are possible.
func (b *bandit) valid() bool {
	for _, g := range b.Open {
		if !(g.P > 0 && g.P <= 1) {
			return false
		}
	}
	return b.Horizon >= 0 && b.Groups >= 0 && b.Groups <= b.Horizon && len(b.Open) <= mostOpen && (b.Horizon > 0 || len(b.Open) == 0)
}

// state encodes the memory. With thousands of columns it leaves the hyperparameters out.
func (m *memory) state() optimizer.State {
	return loop.Encode(m, func() { m.Fitted = nil })
}
