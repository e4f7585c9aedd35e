package cmaes

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// memoryVersion changes when the meaning of a memory changes.
const memoryVersion = 1

// memory is the optimiser's state.
type memory struct {
	Version    int
	Population int // of the present run
	Run        int // restarts so far
	Generation int // of the whole study
	Gaussian   *gaussian
	Choices    *choices
	Consumed   int    // observations that belong to past generations
	Drawn      []draw // points whose results are not consumed
	Bests      floats // best values of the latest generations of this run
	// Evaluations were consumed by this run, LargeSpent and SmallSpent by the runs
	// before it; Small says that this run is a small one, and Larger how often the
	// population was doubled.
	Evaluations, LargeSpent, SmallSpent, Larger int
	Small                                       bool
}

// draw is a suggestion as it was drawn.
type draw struct {
	Trial, Run, Generation int
	At                     floats
}

// floats are numbers that JSON holds to the last bit, in 11 bytes each. encoding/gob, which does so
// too, would make every program larger by 0.4 MB.
type floats []float64

// MarshalText implements encoding.TextMarshaler.
func (f floats) MarshalText() ([]byte, error) {
	raw, err := binary.Append(nil, binary.LittleEndian, []float64(f))
	if err != nil {
		return nil, fmt.Errorf("encode numbers: %w", err)
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *floats) UnmarshalText(text []byte) error {
	raw, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err == nil && len(raw)%8 != 0 {
		err = errors.New("no whole numbers")
	}
	if err != nil {
		return fmt.Errorf("decode %d bytes of numbers: %w", len(text), err)
	}
	if *f = nil; len(raw) > 0 {
		*f = make(floats, len(raw)/8)
		_, err = binary.Decode(raw, binary.LittleEndian, []float64(*f))
	}
	return err
}

// readMemory returns the memory in a state, or nil if it is not one of the task's space.
func (t *task) readMemory(state optimizer.State) *memory {
	var m memory
	if len(state) == 0 || json.Unmarshal(state, &m) != nil || m.Version != memoryVersion {
		return nil
	}
	if m.Population < 2 || m.Population > maxPopulation || m.Run < 0 || m.Larger < 0 || m.Consumed < 0 || m.Consumed > len(t.r.Observations) {
		return nil
	}
	if (m.Gaussian != nil) != (len(t.numeric) > 0) || m.Gaussian != nil && !m.Gaussian.valid(strategyOf(t, m.Population)) {
		return nil
	}
	if (m.Choices != nil) != (len(t.categorical) > 0) || m.Choices != nil && !m.Choices.valid(t.levels) {
		return nil
	}
	if slices.ContainsFunc(m.Drawn, func(d draw) bool { return len(d.At) != len(t.numeric) }) {
		return nil
	}
	return &m
}

// state encodes the memory. Where it is too large, it forgets how the oldest pending
// points were drawn, so that they will count as foreign; without room even for the
// distribution, each request replays the study.
func (t *task) state(m *memory) optimizer.State {
	for {
		state, err := json.Marshal(m)
		if err != nil {
			return nil
		}
		if len(state) <= optimizer.MaxStateSize {
			return state
		}
		if len(m.Drawn) == 0 {
			return nil
		}
		m.Drawn = m.Drawn[(len(m.Drawn)+1)/2:]
	}
}
