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
	sent, wait := s.enqueue(t, reported{Step: int64(step), Metrics: map[string]number{metric: number(value)}})
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

// enqueue has a report sent in the background. sent is closed when it has been, and wait is how long to wait for that.
func (s *Study) enqueue(t *library.Evaluation, r reported) (sent <-chan struct{}, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[t]
	if l == nil || s.life.Err() != nil {
		return nil, 0
	}
	l.waiting = append(l.waiting, r)
	l.reports++
	if l.sent == nil {
		l.sent = make(chan struct{})
		s.background.Go(func() { s.send(t, l) })
	}
	switch {
	case len(l.waiting) >= maxWaiting:
		wait = s.Patience
	case l.reports&(l.reports-1) == 0:
		wait = answerWait
	}
	return l.sent, wait
}

// send sends the reports of a trial in their order until none waits.
func (s *Study) send(t *library.Evaluation, l *lease) {
	for sent := 0; ; {
		batch := s.batch(t, l, sent)
		if len(batch) == 0 {
			return
		}
		if sent = 0; s.sendBatch(t, batch) {
			sent = len(batch)
		}
	}
}

// batch removes the first reports of a trial, which were sent, and returns those to send next. If it returns none, those who
// wait are told.
func (s *Study) batch(t *library.Evaluation, l *lease, sent int) []reported {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.waiting = l.waiting[sent:]
	n := min(len(l.waiting), maxReports)
	if n == 0 || s.life.Err() != nil || t.Ended() != nil {
		l.waiting = nil
		close(l.sent)
		l.sent = nil
		return nil
	}
	return l.waiting[:n:n]
}

// sendBatch sends reports in one call. It reports whether they need not be sent again.
func (s *Study) sendBatch(t *library.Evaluation, batch []reported) bool {
	earlier, last := batch[:len(batch)-1], batch[len(batch)-1]
	request := reportRequest{s.about(t), last, earlier}
	var answer reportAnswer
	err := s.call(s.life, "AddMeasurement", request, &answer)
	switch {
	case err == nil:
		if len(answer.Ignored) > 0 {
			s.log.Warn("the trial's curve has left out what was reported", "study", s.id, "trial", t.Number, "ignored", answer.Ignored)
		}
		s.instruct(t, answer.instructionMessage)
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
	sent := s.unsent(t)
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

// unsent returns what is closed when all reports of a trial have been sent; nil if none waits.
func (s *Study) unsent(t *library.Evaluation) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[t]; l != nil {
		return l.sent
	}
	return nil
}
