package command

import (
	"context"
	"time"

	"github.com/fantasia-hpo/fantasia/worker/streaming"
)

// readPatience is the time that a child may take to read a stop line from its stdin.
const readPatience = time.Second

// askToStop sends a stop line to a child that reads such lines, and waits for the
// trial's end, at most for the grace. It reports whether the child has ended the trial;
// otherwise the child must be stopped.
func (st *stream) askToStop(ctx context.Context, s *session, cause error) bool {
	line, err := streaming.StopLine(s.task.Assignment, cause)
	if err != nil || line == nil || !st.stoppable.Load() {
		return false
	}
	timer := time.NewTimer(s.task.Assignment.Run.GracePeriod())
	defer timer.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readPatience) // ctx has ended
	defer cancel()
	if st.send(ctx, line) != nil {
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
