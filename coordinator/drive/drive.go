// Package drive has what everybody needs who drives an engine: ids, and calls of optimisers that
// cannot bring the process down.
package drive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/judge"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/duration"
)

// SuggestTime limits how long an optimiser may work on a request before it must
// answer with what it has. Workers that wait meanwhile get fallback suggestions.
const SuggestTime = 30 * time.Second

// Suggest has an optimiser answer a request of the engine; a panic there fails the request, not
// the process. The caller sets At of the answer.
func Suggest(ctx context.Context, o optimizer.Optimizer, seed uint64, ask *engine.Ask) engine.Suggested {
	answer := engine.Suggested{Ask: ask}
	answer.Suggestions, answer.State, answer.Cut, answer.Err = suggest(ctx, o, seed, ask)
	if f, ok := o.(optimizer.Forecaster); ok && ask.Forecast && answer.Err == nil {
		answer.Gain = forecast(ctx, f, ask.Problem, answer.State)
	}
	return answer
}

// suggest calls an optimiser. cut says that the time was over before the answer was there.
func suggest(ctx context.Context, o optimizer.Optimizer, seed uint64, ask *engine.Ask) (
	s []optimizer.Suggestion, state optimizer.State, cut bool, err error) {
	defer caught(&err)
	ctx, stop := context.WithTimeout(ctx, SuggestTime)
	defer stop()
	s, state, err = duration.InTime(ctx, o, ask.Problem, ask.State, ask.N, optimizer.NewRand(seed, ask.Request))
	return s, state, ctx.Err() != nil, err
}

// forecast returns what more trials are expected to gain; nil if that is not known, also because of a panic or for want of time.
func forecast(ctx context.Context, f optimizer.Forecaster, p *optimizer.Problem, state optimizer.State) *optimizer.Gain {
	var gain *optimizer.Gain
	ask := func() (err error) {
		defer caught(&err)
		ctx, stop := context.WithTimeout(ctx, SuggestTime)
		defer stop()
		gain, err = f.Forecast(ctx, p, state)
		return err
	}
	if ask() != nil {
		return nil
	}
	return gain
}

// Recommend calls an optimiser. A panic there fails the request, not the process.
func Recommend(ctx context.Context, model optimizer.Recommender, p *optimizer.Problem, state optimizer.State) (
	recommended *optimizer.Recommendation, err error) {
	defer caught(&err)
	return model.Recommend(ctx, p, state)
}

// Judge answers a question of the engine; a panic there fails the request, not the process. The caller sets
// At of the answer.
func Judge(ctx context.Context, question *engine.Judge) engine.Judged {
	answer := engine.Judged{Judge: question}
	answer.Answer, answer.Err = decide(ctx, question)
	return answer
}

func decide(ctx context.Context, question *engine.Judge) (a judge.Answer, err error) {
	defer caught(&err)
	ctx, stop := context.WithTimeout(ctx, SuggestTime)
	defer stop()
	return judge.Decide(ctx, &question.Question)
}

// caught turns a panic of the function that defers it into an error.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the optimiser panicked: %v\n%s", p, debug.Stack())
	}
}

// IDs draws the engine's ids from the system's source of randomness.
type IDs struct{}

var _ engine.IDs = IDs{}

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails: see crypto/rand
	return hex.EncodeToString(b)
}

// Nonce returns 96 random bits.
func (IDs) Nonce() string { return random(12) }

// Trace returns a W3C trace id.
func (IDs) Trace() string { return random(16) }

// Span returns a W3C span id.
func (IDs) Span() string { return random(8) }
