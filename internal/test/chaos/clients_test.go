package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// callTimeout is the longest that a client waits for an answer.
const callTimeout = 5 * time.Second

// caller is a client of the API that evaluates trials.
type caller struct {
	*round
	g      *generation
	random *rand.Rand // for this goroutine
	id     string
	left   bool // the study has ended
}

// evaluate plays one client until the study has ended. Now and then it goes away without
// a word and comes back as another, so that its trials are lost and get another attempt.
func (r *round) evaluate(ctx context.Context, g *generation, number int) {
	c := &caller{round: r, g: g, random: rand.New(rand.NewPCG(*seed, uint64(number)+1))} // 0 draws the faults
	for life := 1; ctx.Err() == nil && !c.left; life++ {
		c.id = fmt.Sprintf("client-%d-%d", number, life)
		for trials := 2 + c.random.IntN(20); trials > 0 && ctx.Err() == nil && !c.left; trials-- {
			c.once(ctx, trials == 1)
		}
	}
}

// once asks for trials and tells what they are worth, unless the client goes away.
func (c *caller) once(ctx context.Context, goAway bool) {
	begin := c.g.history.now()
	answer, err := call(ctx, c.round, "SuggestTrials", func(ctx context.Context) (*connect.Response[fantasiav1.SuggestTrialsResponse], error) {
		return c.api().SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{
			Parent: "studies/" + c.g.study, ClientId: c.id, Count: 1 + c.random.Int32N(2), Wait: durationpb.New(time.Second),
		}))
	})
	if err != nil {
		_ = pause(ctx, 50*time.Millisecond) // ctx is looked at by the caller
		return
	}
	c.left = answer.Msg.GetStudyState() != fantasiav1.StudyState_STUDY_STATE_RUNNING
	for _, t := range answer.Msg.GetTrials() {
		c.g.history.add(operation{
			kind: suggest, client: c.id, trial: int(t.GetNumber()), attempt: len(t.GetAttempts()), outcome: done,
			call: begin, ret: c.g.history.now(),
		})
	}
	if goAway {
		return
	}
	for _, t := range answer.Msg.GetTrials() {
		c.tellEnd(ctx, int(t.GetNumber()))
	}
}

// tellEnd evaluates a trial and completes it, by asking again until the answer is definite.
func (c *caller) tellEnd(ctx context.Context, trial int) {
	name := fmt.Sprintf("studies/%s/trials/%d", c.g.study, trial)
	for step := range c.random.Int64N(3) {
		if !c.measure(ctx, name, trial, step+1) {
			break
		}
	}
	if pause(ctx, time.Duration(10+c.random.IntN(40))*time.Millisecond) != nil {
		return
	}
	value := c.random.Float64()
	for ctx.Err() == nil && !c.complete(ctx, name, trial, c.id, value) {
		_ = pause(ctx, 50*time.Millisecond)
	}
	switch c.random.IntN(4) {
	case 0: // told again
		c.complete(ctx, name, trial, c.id, value)
	case 1: // somebody who never had it
		c.complete(ctx, name, trial, "stranger", c.random.Float64())
	case 2:
		c.get(ctx, name, trial)
	}
}

// measure adds a measurement, and reports whether to go on.
func (c *caller) measure(ctx context.Context, name string, trial int, step int64) bool {
	o := operation{kind: measure, client: c.id, trial: trial, step: step, call: c.g.history.now(), outcome: unknown}
	answer, err := call(ctx, c.round, "AddMeasurement",
		func(ctx context.Context) (*connect.Response[fantasiav1.AddMeasurementResponse], error) {
			return c.api().AddMeasurement(ctx, connect.NewRequest(&fantasiav1.AddMeasurementRequest{
				Name: name, ClientId: c.id, Step: step, Metrics: map[string]float64{"loss": float64(step)},
			}))
		})
	if err != nil {
		return true
	}
	next := answer.Msg.GetAction()
	o.outcome, o.ret = done, c.g.history.now()
	o.goOn = next == fantasiav1.TrialAction_TRIAL_ACTION_CONTINUE
	c.g.history.add(o)
	return o.goOn
}

// complete tells a value, and reports whether the answer was definite.
func (c *caller) complete(ctx context.Context, name string, trial int, client string, value float64) bool {
	o := operation{kind: complete, client: client, trial: trial, value: value, call: c.g.history.now(), outcome: unknown}
	_, err := call(ctx, c.round, "CompleteTrial", func(ctx context.Context) (*connect.Response[fantasiav1.CompleteTrialResponse], error) {
		return c.api().CompleteTrial(ctx,
			connect.NewRequest(&fantasiav1.CompleteTrialRequest{Name: name, ClientId: client, Values: []float64{value}}))
	})
	switch {
	case err == nil:
		o.outcome = done
	case connect.CodeOf(err) == connect.CodeFailedPrecondition:
		o.outcome = refused
	}
	o.ret = c.g.history.now()
	c.g.history.add(o)
	return o.outcome != unknown
}

// get reads a trial through any coordinator.
func (c *caller) get(ctx context.Context, name string, trial int) {
	o := operation{kind: get, client: c.id, trial: trial, call: c.g.history.now(), outcome: done}
	answer, err := call(ctx, c.round, "GetTrial", func(ctx context.Context) (*connect.Response[fantasiav1.GetTrialResponse], error) {
		return c.api().GetTrial(ctx, connect.NewRequest(&fantasiav1.GetTrialRequest{Name: name}))
	})
	if err != nil {
		return
	}
	t := answer.Msg.GetTrial()
	o.goOn = t.GetState() != fantasiav1.TrialState_TRIAL_STATE_COMPLETED
	o.value, o.ret = t.GetValue(), c.g.history.now()
	c.g.history.add(o)
}

// call makes a call of the API and counts its answer.
func call[T any](ctx context.Context, r *round, what string, do func(context.Context) (T, error)) (T, error) {
	one, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := do(one)
	if ctx.Err() == nil {
		r.report.answered(what, err)
	}
	return answer, err
}
