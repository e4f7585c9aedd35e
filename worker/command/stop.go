package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// readPatience is the time that a child may take to read a stop line from its stdin.
const readPatience = time.Second

// stopLine is the line that a child receives for a trial that it should end.
type stopLine struct {
	Stop    bool   `json:"stop"`
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
}

// lineReason returns the reason to give in a stop line. It is empty if the child must be
// stopped instead: a worker that leaves no longer needs the child, and a child whose trial
// runs too long may hang.
func lineReason(cause error) string {
	switch {
	case errors.Is(cause, evaluation.ErrPruned):
		return "pruned"
	case errors.Is(cause, evaluation.ErrCancelled):
		return "cancelled"
	default:
		return ""
	}
}

// askToStop sends a stop line to a child that reads such lines, and waits for the
// trial's end, at most for the grace. It reports whether the child has ended the trial;
// otherwise the child must be stopped.
func (st *stream) askToStop(ctx context.Context, s *session, cause error) bool {
	a, reason := s.task.Assignment, lineReason(cause)
	if reason == "" || !st.stoppable.Load() {
		return false
	}
	line, err := json.Marshal(map[string]stopLine{"fantasia": {Stop: true, Trial: a.Trial, Attempt: a.Attempt, Reason: reason}})
	if err != nil {
		return false
	}
	timer := time.NewTimer(a.Run.GracePeriod())
	defer timer.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readPatience) // ctx has ended
	defer cancel()
	if st.send(ctx, append(line, '\n')) != nil {
		return false
	}
	select {
	case <-s.ended:
		return true
	case <-st.child.exited:
	case <-timer.C:
	case <-s.task.Kill:
	}
	return s.isEnded()
}
