package hebo

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/gp"
	"github.com/fantasia-hpo/fantasia/optimizer/bayes/loop"
)

// memoryVersion changes when the meaning of a memory changes.
const memoryVersion = 1

// memory is the optimiser's state: its position in the initial design, and the
// hyperparameters that the next fit starts from.
type memory struct {
	Version int `json:"version"`
	loop.Design
	// Escapes counts the points that were taken from an even spread to leave a plateau.
	Escapes int `json:"escapes,omitempty"`
	// Idle counts the latest requests that promised nothing: see watch.
	Idle int `json:"idle,omitempty"`
	// Settled says that Fitted is of a model of fewer observations.
	Settled bool `json:"settled,omitempty"`
	// Fitted is nil before the first fit.
	Fitted *gp.Hyperparameters `json:"fitted,omitempty"`
	// Seen counts the observations, of all outcomes, that Fitted was searched for with. Plain
	// says that it was found without the power transform of the outcomes.
	Seen  int  `json:"seen,omitempty"`
	Plain bool `json:"plain,omitempty"`
	// Several are those of several objectives' models; nil before the first fit.
	Several []gp.Hyperparameters `json:"several,omitempty"`
	// Limits are those of the limits' models; nil before the first fit.
	Limits []gp.Hyperparameters `json:"limits,omitempty"`
	// Earlier are the hyperparameters of the models of earlier studies; nil before the first fit.
	Earlier []gp.Hyperparameters `json:"earlier,omitempty"`
	// Full counts the completed evaluations of the last full fit.
	Full int `json:"full,omitempty"`
	// Curves are the hyperparameters of the model of curves, nil before its first fit. Looks is how many looks they were fitted to.
	Curves *gp.Hyperparameters `json:"curves,omitempty"`
	Looks  int                 `json:"looks,omitempty"`
	// Failures holds the hyperparameters of the models of failures, by kind.
	Failures map[optimizer.Outcome]gp.Hyperparameters `json:"failures,omitempty"`
}

// readMemory returns the memory in a state. It returns a fresh one if the state has
// another version or another number of kernel hyperparameters.
func readMemory(state optimizer.State, params int) *memory {
	fresh := &memory{Version: memoryVersion}
	var m memory
	if json.Unmarshal(state, &m) != nil || m.Version != memoryVersion || m.Cursor > math.MaxUint32 ||
		m.Escapes < 0 || m.Full < 0 || m.Idle < 0 {
		return fresh
	}
	if m.Fitted != nil && (len(m.Fitted.Kernel) != params || !positive(m.Fitted.Noise)) {
		return fresh
	}
	for _, h := range slices.Concat(m.Several, m.Limits) {
		if len(h.Kernel) != params || !positive(h.Noise) {
			return fresh
		}
	}
	return &m
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// The number of observations from which hyperparameters are not searched for in every request,
// and how many of these allow one more before the next search: the likelihood of so many
// observations hardly changes with a few more, and a search costs more than all else.
const (
	manySeen  = 64
	seenRatio = 32
)

// current reports whether the remembered hyperparameters serve for the problem's observations. A
// new best one shows more of the objective than others do, and changes the outcomes' transform.
func (m *memory) current(p *optimizer.Problem) bool {
	all := len(p.Observations)
	if m.Fitted == nil || m.Seen == 0 || all < manySeen || all < m.Seen || all-m.Seen >= all/seenRatio {
		return false
	}
	best := p.Best()
	for _, o := range p.Observations[m.Seen:] {
		if best != nil && o.Trial == best.Trial {
			return false
		}
	}
	return true
}

// remember keeps fitted hyperparameters for the next fit if they fit into a state; with
// more than a few thousand columns, the next fit starts afresh.
func (m *memory) remember(h gp.Hyperparameters) {
	if m.Fitted = nil; fits([]gp.Hyperparameters{h}) {
		m.Fitted = &h
	}
}

// rememberSeveral is remember for several objectives.
func (m *memory) rememberSeveral(all []gp.Hyperparameters) {
	if m.Several = nil; fits(all) {
		m.Several = all
	}
}

// rememberLimits keeps the hyperparameters of the limits' models if they fit into a state
// beside those of the objectives.
func (m *memory) rememberLimits(all []gp.Hyperparameters) {
	objectives := m.Several
	if objectives == nil {
		objectives = all[:1] // the only objective has as many
	}
	if m.Limits = nil; fits(all, objectives) {
		m.Limits = all
	}
}

// rememberFailures keeps the hyperparameters of the models of failures if they fit into a
// state beside the others.
func (m *memory) rememberFailures(failures map[optimizer.Outcome]gp.Hyperparameters) {
	var fitted []gp.Hyperparameters
	if m.Fitted != nil {
		fitted = append(fitted, *m.Fitted)
	}
	if m.Failures = nil; fits(fitted, m.Several, m.Limits, m.Earlier, slices.Collect(maps.Values(failures))) {
		m.Failures = failures
	}
}

// rememberCurves keeps the hyperparameters of the model of curves if they fit into a state beside another model's.
func (m *memory) rememberCurves(h gp.Hyperparameters, looks int) {
	if m.Curves, m.Looks = nil, 0; fits([]gp.Hyperparameters{h, h}) {
		m.Curves, m.Looks = &h, looks
	}
}

// rememberEarlier keeps the hyperparameters of earlier studies' models if they fit into a state beside
// as many of the study's own.
func (m *memory) rememberEarlier(all []gp.Hyperparameters) {
	if m.Earlier = nil; fits(all, all[:min(1, len(all))], all[:min(1, len(all))]) {
		m.Earlier = all
	}
}

// longestFloat is the maximum length of a number in a state.
const longestFloat = 25

// fits reports whether all of these hyperparameters fit into a state, with eight numbers'
// length for the words around each of them.
func fits(models ...[]gp.Hyperparameters) bool {
	numbers := 0
	for _, h := range slices.Concat(models...) {
		numbers += len(h.Kernel) + 8
	}
	return numbers*longestFloat < optimizer.MaxStateSize
}

// checkFailures forgets hyperparameters that do not belong to a model over dim columns.
func (m *memory) checkFailures(dim int) {
	maps.DeleteFunc(m.Failures, func(_ optimizer.Outcome, h gp.Hyperparameters) bool {
		return len(h.Kernel) != dim+1 || !positive(h.Noise)
	})
}

// state encodes the memory as a state. It is nil, so that the next request starts afresh,
// if a hyperparameter is not finite.
func (m *memory) state() optimizer.State { return loop.Encode(m, func() {}) }
