package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// callTime is how long a client waits for an answer.
const callTime = 15 * time.Second

// client evaluates the trials of a study that has no command, by calls of the API.
type client struct {
	w     *world
	study string // its name
	id    string
	// objectives are the study's.
	objectives []study.Objective
	rng        *rand.Rand
}

// evaluateByClient plays clients one after the other until ctx ends: each goes away without a word
// at some time, and the next one comes.
func (w *world) evaluateByClient(ctx context.Context, s *study.Study, number int) {
	c := &client{w: w, study: s.Metadata.Name, objectives: s.Spec.Objectives(), rng: rand.New(rand.NewPCG(w.seed, uint64(1000+number)))}
	for life := 1; ctx.Err() == nil; life++ {
		c.id = fmt.Sprintf("client-%d-%d", number, life)
		for n := 1 + c.rng.IntN(20); n > 0 && ctx.Err() == nil; n-- {
			c.once(ctx, n == 1)
		}
	}
}

// once asks for trials and evaluates them, unless the client goes away.
func (c *client) once(ctx context.Context, goAway bool) {
	answer, err := call(ctx, c, func(ctx context.Context, to *coordinator.Coordinator) (coordinator.Suggestions, error) {
		return to.Suggest(ctx, c.study, c.id, 1+c.rng.IntN(2), 5*time.Second)
	})
	if err != nil || answer.State.Terminal() {
		sleep(ctx, time.Second)
		return
	}
	for i := range answer.Trials {
		t := &answer.Trials[i]
		c.w.check.hold(c.id, attemptOf(t, c.w.idOf(c.study)))
	}
	for i := range answer.Trials {
		if goAway {
			return
		}
		c.tellTrial(ctx, &answer.Trials[i])
	}
}

// tellTrial evaluates a trial and tells how it has ended, again until the answer is definite.
func (c *client) tellTrial(ctx context.Context, t *record.Trial) {
	held := coordinator.HeldAttempt{Trial: t.Number, Attempt: len(t.Attempts)}
	for step := range int64(c.rng.IntN(6)) {
		sleep(ctx, time.Duration(c.rng.Float64()*float64(4*time.Second)))
		next, err := call(ctx, c, func(ctx context.Context, to *coordinator.Coordinator) (engine.Instruction, error) {
			if step%2 == 0 {
				return to.Measure(ctx, c.study, c.id, held, []coordinator.Report{{Step: step, Metrics: metricsOf(c.objectives, c.rng.Float64())}})
			}
			list, err := to.Heartbeat(ctx, c.study, c.id, []coordinator.HeldAttempt{held})
			if err != nil {
				return engine.Instruction{}, err
			}
			return list[0], nil
		})
		if err == nil && next.Do == engine.Abandon {
			return
		}
	}
	value := c.rng.Float64()
	told := engine.Told{
		Client: c.id, Trial: held.Trial, Attempt: held.Attempt,
		Outcome: messaging.OutcomeCompleted, Values: valuesOf(len(c.objectives), value), Metrics: map[string]float64{"memory": memoryOf(value)},
	}
	switch x := c.rng.Float64(); {
	case x < 0.1:
		told.Outcome, told.Values, told.Failure = messaging.OutcomeFailed, nil,
			&messaging.Failure{Reason: "exit", Message: "the program has failed"}
	case x < 0.15:
		told.Outcome, told.Values = messaging.OutcomeHandedBack, nil
	default:
		c.w.check.found(attemptOf(t, c.w.idOf(c.study)), told.Values[0])
	}
	for ctx.Err() == nil {
		asked := time.Now()
		trial, err := call(ctx, c, func(ctx context.Context, to *coordinator.Coordinator) (record.Trial, error) {
			return to.Tell(ctx, c.study, func(now time.Time) engine.Event {
				event := told // a call that has ended without an answer may still be carried out
				event.At = now
				return event
			})
		})
		switch {
		case err == nil && told.Outcome == messaging.OutcomeCompleted:
			c.w.check.completed(c.study, told.Values[0], asked, &trial)
			return
		case err == nil || errors.Is(err, engine.ErrRefused) || errors.Is(err, engine.ErrNoTrial) || errors.Is(err, ledger.ErrNotFound):
			return
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// call makes a call to whoever leads. Its answer may be lost.
func call[T any](ctx context.Context, c *client, do func(context.Context, *coordinator.Coordinator) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for {
		err = coordinator.ErrNotLeader
		for _, r := range c.w.coordinators {
			to := r.running()
			if to == nil {
				continue
			}
			if answer, err = do(ctx, to); !errors.Is(err, coordinator.ErrNotLeader) {
				break
			}
		}
		switch {
		case err == nil && c.w.flip("answer", c.id, c.rng.Uint64()):
			return *new(T), errLost
		case !errors.Is(err, coordinator.ErrNotLeader):
			c.w.check.answer(err)
			return answer, err
		case ctx.Err() != nil:
			return answer, ctx.Err()
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

var errLost = errors.New("the answer was lost")

// answer fails for an error that the API would call internal.
func (c *checker) answer(err error) {
	if err == nil || ledger.Away(err) {
		return
	}
	for _, right := range []error{
		context.Canceled, context.DeadlineExceeded, engine.ErrRefused, engine.ErrNoTrial, ledger.ErrNotFound,
		ledger.ErrUnknown, ledger.ErrFenced, ledger.ErrNoSpace,
	} {
		if errors.Is(err, right) {
			return
		}
	}
	c.fail("a client gets the error %v", err)
}

// attemptOf returns the last attempt of a trial.
func attemptOf(t *record.Trial, study string) messaging.AttemptID {
	return messaging.AttemptID{Study: study, Trial: t.Number, Attempt: len(t.Attempts), Nonce: t.Last().Nonce}
}

// sleep sleeps until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
