package lgp

import (
	"encoding/json"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
)

// memoryVersion changes when the meaning of a memory changes.
const memoryVersion = 1

// memory is the optimiser's state: its position in the initial design, and where the
// chains are.
type memory struct {
	Version int `json:"version"`
	loop.Design
	Model Model `json:"model"`
	// Chains holds the chain of each scale.
	Chains [len(shares)]*position `json:"chains"`
}

// position is the state of a chain. Latent values are stored in thousandths, which is
// exact enough to continue from: maxPoints of them for each scale fit into a state.
type position struct {
	Theta []float64 `json:"theta"`
	// Of are the indices of the observations that have the latent values.
	Of     []int `json:"of,omitempty"`
	Latent []int `json:"latent,omitempty"`
}

// mostLatent bounds the latent values of a state.
const mostLatent = 100

// readMemory returns the memory in a state, or a fresh one if the state has another
// version or is of another model.
func readMemory(state optimizer.State, kind Model) *memory {
	fresh := &memory{Version: memoryVersion, Model: kind}
	var m memory
	if json.Unmarshal(state, &m) != nil || m.Version != memoryVersion || m.Model != kind || m.Cursor > math.MaxUint32 {
		return fresh
	}
	return &m
}

// chain returns a chain for the target, whose rows are the observations of, and whether it
// continues an earlier one. New latent values begin at 0.
func (m *memory) chain(t *target, of []int, s scale) (c *chain, known bool) {
	theta, latent := make([]float64, t.params()), make([]float64, t.latents())
	p := m.Chains[s]
	if p == nil || len(p.Theta) != len(theta) || len(p.Of) != len(p.Latent) {
		return t.start(theta, latent), false
	}
	at := make(map[int]int, len(p.Of))
	for k, i := range p.Of {
		at[i] = p.Latent[k]
	}
	copy(theta, p.Theta)
	for row := range latent {
		latent[row] = min(max(float64(at[of[row]])/1000, -mostLatent), mostLatent)
	}
	if c = t.start(theta, latent); math.IsInf(c.at, -1) {
		return t.start(make([]float64, t.params()), make([]float64, t.latents())), false
	}
	return c, true
}

// keep stores the position of a scale's chain.
func (m *memory) keep(c *chain, of []int, s scale) {
	p := &position{Theta: c.theta}
	for row, v := range c.latent {
		p.Of, p.Latent = append(p.Of, of[row]), append(p.Latent, int(math.Round(1000*v)))
	}
	m.Chains[s] = p
}

// state encodes the memory as a state. One that is too long, since a warp has thousands of
// shapes, keeps no chains.
func (m *memory) state() optimizer.State {
	return loop.Encode(m, func() { m.Chains = [len(shares)]*position{} })
}
