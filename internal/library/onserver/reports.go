package onserver

import (
	"context"
	"errors"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/library"
)

const (
	// answerWait is how long Report waits for the server's answer at most.
	answerWait = time.Second
	// maxWaiting is how many reports of a trial may wait to be sent; Report waits beyond that.
	maxWaiting = 2000
	// maxReports is how many of them one call sends.
	maxReports = 500
)

// Report implements library.Binding. Reports are sent in the background. So that short loops are stopped,
// too, Report waits for the answer after the 1st, 2nd, 4th, 8th and so on.
func (s *Study) Report(t *library.Evaluation, metric string, step int, value float64) error {
	if err := s.Instruction(t); err != nil {
		return err
	}
	s.mu.Lock()
	l := s.leases[t]
	if l == nil || s.life.Err() != nil {
		s.mu.Unlock()
		return s.Instruction(t)
	}
	l.waiting = append(l.waiting, reported{Step: int64(step), Metrics: map[string]number{metric: number(value)}})
	l.reports++
	if l.sent == nil {
		l.sent = make(chan struct{})
		s.background.Go(func() { s.send(t, l) })
	}
	sent, wait := l.sent, time.Duration(0)
	if l.reports&(l.reports-1) == 0 {
		wait = answerWait
	}
	if len(l.waiting) >= maxWaiting {
		wait = s.Patience
	}
	s.mu.Unlock()
	if wait > 0 {
		timeout := time.NewTimer(wait)
		defer timeout.Stop()
		select {
		case <-sent:
		case <-timeout.C:
		case <-t.Over():
		case <-s.life.Done():
		}
	}
	return s.Instruction(t)
}

// send sends the reports of a trial in their order until none waits.
func (s *Study) send(t *library.Evaluation, l *lease) {
	for {
		s.mu.Lock()
		n := min(len(l.waiting), maxReports)
		if n == 0 || s.life.Err() != nil || t.Ended() != nil {
			l.waiting = nil
			close(l.sent)
			l.sent = nil
			s.mu.Unlock()
			return
		}
		batch := l.waiting[:n:n]
		s.mu.Unlock()
		if s.sendBatch(t, batch) {
			s.mu.Lock()
			l.waiting = l.waiting[n:]
			s.mu.Unlock()
		}
	}
}

// sendBatch sends reports in one call. It reports whether they need not be sent again.
func (s *Study) sendBatch(t *library.Evaluation, batch []reported) bool {
	earlier, last := batch[:len(batch)-1], batch[len(batch)-1]
	request := reportRequest{s.about(t), last, earlier}
	var answer instructionMessage
	err := s.call(s.life, "AddMeasurement", request, &answer)
	switch {
	case err == nil:
		s.instruct(t, answer)
	case errors.Is(err, library.ErrUnavailable): // as long as the trial is evaluated, the report is kept
		return false
	case len(earlier) > 0: // what has arrived already is ignored
		for i := range batch {
			if !s.sendBatch(t, batch[i:i+1]) {
				return false
			}
		}
	default:
		s.log.Warn("a report was refused", "study", s.id, "trial", t.Number, "step", last.Step, "error", err)
	}
	return true
}

// flush waits until all reports of a trial have been answered.
func (s *Study) flush(ctx context.Context, t *library.Evaluation) error {
	s.mu.Lock()
	var sent chan struct{}
	if l := s.leases[t]; l != nil {
		sent = l.sent
	}
	s.mu.Unlock()
	if sent == nil {
		return nil
	}
	select {
	case <-sent:
	case <-t.Over():
	case <-s.life.Done():
		return library.ErrClosed
	case <-ctx.Done():
		return library.ErrUnavailable
	}
	return nil
}
