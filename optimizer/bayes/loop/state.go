package loop

import (
	"encoding/json"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Encode returns an optimiser's memory as a state, which is at most optimizer.MaxStateSize long:
// the guard refuses a longer one, and the request would fail. If the memory is too long, shrink first takes
// out of the memory what the optimiser can do without. The state is nil if there is no
// way to encode it.
func Encode(memory any, shrink func()) optimizer.State {
	state, err := json.Marshal(memory)
	if err != nil || len(state) > optimizer.MaxStateSize {
		shrink()
		state, err = json.Marshal(memory)
	}
	if err != nil {
		return nil
	}
	return state
}
