package coordinator

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/publish"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// effects are the actions to take once the records that caused them are durable.
// The exception are burials, which are made BEFORE.
type effects struct {
	publish.Messages
	burials []burial
	ended   []endedTrial
	asks    []askOf
	// fallbacks are requests for points that need no model.
	fallbacks []askOf
	// committed is when the records became durable.
	committed time.Time
}

type endedTrial struct {
	run   *run
	trial record.Trial
}

// burial is a result for the dead-letter queue, and the attempt and the worker that it
// names.
type burial struct {
	deadLetter
	worker string
	id     messaging.AttemptID
}

type askOf struct {
	run *run
	ask *engine.Ask
}

// takeEffects adds an output's effects, except for the results to bury.
func (e *effects) takeEffects(r *run, out *engine.Output) {
	e.Take(r.spec.ID, out)
	for _, t := range out.Ended {
		e.ended = append(e.ended, endedTrial{r, t})
	}
	if out.Ask != nil {
		e.asks = append(e.asks, askOf{r, out.Ask})
	}
	if out.Fallback != nil {
		e.fallbacks = append(e.fallbacks, askOf{r, out.Fallback})
	}
}
