package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// TestStress has clients that cut requests off, repeat them, die and come again
// over real connections. Each attempt ends once; whatever a client was told is
// taken is the ending; no value is another trial's.
func TestStress(t *testing.T) {
	const slots, trials = 4, 60
	r := newRig(t, Options{Slots: slots, ClientTimeout: time.Minute})
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.Serve(ctx, listener) }()
	base := "http://" + listener.Addr().String()
	transport := &http.Transport{}
	var mu sync.Mutex
	taken := map[int]bool{} // by trial
	var clients sync.WaitGroup
	for n := range slots + 1 { // one more than there are slots
		rng := rand.New(rand.NewPCG(testseed.Get(), uint64(n)))
		c := &stressed{t: t, http: &http.Client{Transport: transport}, base: base, name: fmt.Sprint("client-", n), rng: rng}
		clients.Go(func() {
			for {
				trial, over := c.trial(ctx)
				mu.Lock()
				if trial > 0 {
					taken[trial] = true
				}
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	for n := 1; n <= trials; n++ {
		r.offer(n)
	}
	for r.ended() < trials {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the test ended before its trials")
		}
	}
	r.Terminate()
	clients.Wait()
	cancel()
	transport.CloseIdleConnections()
	if err := <-served; err != nil {
		t.Error(err)
	}
	completed := 0
	for n := 1; n <= trials; n++ {
		e, _ := r.ending(n)
		switch e.Outcome {
		case messaging.OutcomeCompleted:
			completed++
			if e.Values.First() != float64(n) {
				t.Errorf("trial %d has the value %v, which is another's", n, e.Values.First())
			}
		case messaging.OutcomeFailed: // given to a client that died of it too often
		default:
			t.Errorf("trial %d ended as %v", n, e)
		}
		if taken[n] && e.Outcome != messaging.OutcomeCompleted {
			t.Errorf("a client was told that trial %d is completed; it ended as %+v", n, e)
		}
	}
	t.Logf("%d of %d trials completed", completed, trials)
	if completed == 0 {
		t.Error("none of the trials completed")
	}
}

// ended is how many trials have ended.
func (r *rig) ended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.endings)
}

// stressed is a client with a bad connection.
type stressed struct {
	t    *testing.T
	http *http.Client
	base string
	name string
	rng  *rand.Rand
}

// trial evaluates one, or dies in the middle. It returns the trial's number where
// it was told that its completion is taken, and whether there are no more.
func (c *stressed) trial(ctx context.Context) (trial int, over bool) {
	var next struct {
		ID    string
		Trial int
	}
	switch status := c.insist(ctx, "/v1/next", map[string]any{"client": c.name, "wait": 0.2}, &next); status {
	case http.StatusGone, 0:
		return 0, true
	case http.StatusNoContent:
		return 0, false
	}
	if c.rng.IntN(4) == 0 {
		return 0, false // dies, and starts again
	}
	var stop struct{ Stop bool }
	c.insist(ctx, "/v1/report", map[string]any{"id": next.ID, "metrics": map[string]any{"error": next.Trial}}, &stop)
	var end struct{ Taken bool }
	c.insist(ctx, "/v1/complete", map[string]any{"id": next.ID}, &end)
	if end.Taken {
		return next.Trial, false
	}
	return 0, false
}

// insist repeats a request until it is answered; 0 where ctx has ended.
func (c *stressed) insist(ctx context.Context, path string, body, answer any) int {
	for ctx.Err() == nil {
		status, err := c.once(ctx, path, body, answer)
		if err == nil {
			return status
		}
	}
	return 0
}

// once sends a request whose answer is not waited for at times.
func (c *stressed) once(ctx context.Context, path string, body, answer any) (status int, err error) {
	if c.rng.IntN(4) == 0 {
		var cut context.CancelFunc
		ctx, cut = context.WithTimeout(ctx, time.Duration(c.rng.IntN(3000))*time.Microsecond)
		defer cut()
	}
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(got, answer)
	}
	if resp.StatusCode == http.StatusBadRequest {
		c.t.Errorf("%s %s: %s", path, text, got)
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		err = errors.New("to be sent again")
	}
	return resp.StatusCode, err
}
