package commit

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/deadletter"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/publish"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// Released is what may be done once the records that caused it are durable.
type Released struct {
	publish.Messages
	Ended []Ended
	// Asks are requests to the optimisers, and Fallbacks those for points that need no model.
	Asks, Fallbacks []Ask
	// Judges ask whether trials go on.
	Judges []Judge
	// Committed is when the records became durable.
	Committed time.Time

	burials []burial // made BEFORE the commit, while the cursor is still behind them
}

// Ended is a trial that has ended, and its study.
type Ended struct {
	Study *record.Study
	Trial record.Trial
}

// Ask is a request of the engine of a study, given by its id.
type Ask struct {
	Study string
	*engine.Ask
}

// Judge is a question of the engine of a study, given by its id.
type Judge struct {
	Study string
	*engine.Judge
}

// burial is a result for the dead-letter queue, and the attempt and the worker that it
// names.
type burial struct {
	deadletter.Letter
	worker string
	id     messaging.AttemptID
}

// add adds what an engine's output causes, except for the results to bury.
func (r *Released) add(s *record.Study, out *engine.Output) {
	r.AddOutput(s.ID, out)
	for i := range out.Ended {
		r.Ended = append(r.Ended, Ended{s, out.Ended[i]})
	}
	if out.Ask != nil {
		r.Asks = append(r.Asks, Ask{s.ID, out.Ask})
	}
	if out.Fallback != nil {
		r.Fallbacks = append(r.Fallbacks, Ask{s.ID, out.Fallback})
	}
	if out.Judge != nil {
		r.Judges = append(r.Judges, Judge{s.ID, out.Judge})
	}
}
