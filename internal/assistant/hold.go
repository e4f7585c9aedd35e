package assistant

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// usualLease is how long a trial is kept without a heartbeat, if the server does not say.
const usualLease = time.Minute

// hold is a trial that a client of this process evaluates.
type hold struct {
	client         string
	trial, attempt int32
	// last is when its evaluator was last heard of.
	last time.Time
}

// owner is whose trial it is. Callers with different tokens do not see each other's trials.
type owner struct {
	bearer string
	// token says whether the caller came with a token of its own.
	token bool
	study string
}

// holds renews the leases of trials that are evaluated, because those who evaluate them say
// nothing for longer than a lease lasts.
type holds struct {
	s      *Server
	mu     sync.Mutex
	trials map[owner]map[int32]hold
	lease  time.Duration
	wake   chan struct{}
	stop   context.CancelFunc
	done   chan struct{}
}

func newHolds(s *Server) *holds {
	ctx, stop := context.WithCancel(context.Background())
	h := &holds{s: s, trials: map[owner]map[int32]hold{}, lease: usualLease, wake: make(chan struct{}, 1), stop: stop,
		done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.run(ctx)
	}()
	return h
}

func ownerOf(ctx context.Context, study string) owner {
	bearer, ok := Bearer(ctx)
	return owner{bearer: bearer, token: ok, study: study}
}

// context returns a context with the owner's token.
func (o owner) context(ctx context.Context) context.Context {
	if !o.token {
		return ctx
	}
	return WithBearer(ctx, o.bearer)
}

// add holds a trial, whose lease lasts for so long.
func (h *holds) add(ctx context.Context, study string, held hold, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := ownerOf(ctx, study)
	if h.trials[o] == nil {
		h.trials[o] = map[int32]hold{}
	}
	held.last = time.Now()
	h.trials[o][held.trial] = held
	if lease > 0 && lease < h.lease {
		h.lease = lease
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// find returns a held trial, and notes that its evaluator was heard of.
func (h *holds) find(ctx context.Context, study string, trial int32) (hold, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := ownerOf(ctx, study)
	held, ok := h.trials[o][trial]
	if ok {
		held.last = time.Now()
		h.trials[o][trial] = held
	}
	return held, ok
}

// drop forgets a trial.
func (h *holds) drop(ctx context.Context, study string, trial int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(ownerOf(ctx, study), trial)
}

func (h *holds) remove(o owner, trial int32) {
	delete(h.trials[o], trial)
	if len(h.trials[o]) == 0 {
		delete(h.trials, o)
	}
}

// all returns the held trials by owner and client.
func (h *holds) all() (list map[owner]map[string][]hold, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list = map[owner]map[string][]hold{}
	for o, trials := range h.trials {
		list[o] = map[string][]hold{}
		for _, number := range slices.Sorted(maps.Keys(trials)) {
			held := trials[number]
			list[o][held.client] = append(list[o][held.client], held)
		}
	}
	return list, h.lease / 3
}

// run renews leases until ctx ends.
func (h *holds) run(ctx context.Context) {
	for {
		list, every := h.all()
		for o, clients := range list {
			for client, trials := range clients {
				h.beat(ctx, o, client, trials)
			}
		}
		var after <-chan time.Time
		if len(list) > 0 {
			after = time.After(every)
		}
		select {
		case <-ctx.Done():
			return
		case <-after:
		case <-h.wake:
		}
	}
}

// beat renews the leases of a client's trials, and hands back those that nobody spoke of for
// too long.
func (h *holds) beat(ctx context.Context, o owner, client string, trials []hold) {
	q := &fantasiav1.HeartbeatTrialsRequest{Parent: "studies/" + o.study, ClientId: client}
	var late []hold
	for _, t := range trials {
		if time.Since(t.last) > h.s.o.Hold {
			late = append(late, t)
			continue
		}
		q.Trials, q.Attempts = append(q.Trials, t.trial), append(q.Attempts, t.attempt)
	}
	err := h.s.on(o.context(ctx), o.study, 0, func(ctx context.Context, src *Source) error {
		for _, t := range late {
			h.release(ctx, src, o, t, "fantasia mcp heard nothing of it for too long")
		}
		if len(q.Trials) == 0 {
			return nil
		}
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.HeartbeatTrials, q)
		for _, i := range resp.GetInstructions() {
			if i.GetAction() == fantasiav1.TrialAction_TRIAL_ACTION_ABANDON {
				h.forget(o, i.GetTrial(), client)
			}
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		h.s.o.Logger.Warn("could not renew the leases of trials", telemetry.LogStudy, o.study, telemetry.LogError, err)
	}
}

// forget drops a trial unless another client holds it meanwhile.
func (h *holds) forget(o owner, trial int32, client string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trials[o][trial].client == client {
		h.remove(o, trial)
	}
}

// release hands a trial back.
func (h *holds) release(ctx context.Context, src *Source, o owner, t hold, reason string) {
	_, err := fetch.Send(ctx, src.Service, fetch.Service.ReleaseTrial, &fantasiav1.ReleaseTrialRequest{
		Name: view.TrialName(o.study, int(t.trial)), ClientId: t.client, Attempt: t.attempt, Reason: reason,
	})
	if err != nil { // its lease will end
		h.s.o.Logger.Warn("could not hand a trial back", telemetry.LogStudy, o.study, telemetry.LogTrial, t.trial, telemetry.LogError, err)
	}
	h.forget(o, t.trial, t.client)
}

// close hands back all trials.
func (h *holds) close(ctx context.Context) {
	h.stop()
	<-h.done
	list, _ := h.all()
	for o, clients := range list {
		for _, trials := range clients {
			err := h.s.on(o.context(ctx), o.study, 0, func(ctx context.Context, src *Source) error {
				for _, t := range trials {
					h.release(ctx, src, o, t, "fantasia mcp ended")
				}
				return nil
			})
			if err != nil {
				h.s.o.Logger.Warn("could not hand trials back", telemetry.LogStudy, o.study, telemetry.LogError, err)
			}
		}
	}
}
