package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
	"github.com/fantasia-hpo/fantasia/study"
)

const callsStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: calls}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 8
`

// tellers evaluate the trials of a study through any coordinator that answers.
type tellers struct {
	apis  []fantasiav1connect.StudyServiceClient
	calls atomic.Int64

	mu   sync.Mutex
	told map[int32]float64 // by trial: what a coordinator has acknowledged
}

// work takes trials and tells their values until the study has ended.
func (c *tellers) work(ctx context.Context, id string) error {
	for ctx.Err() == nil {
		answer, err := c.api().SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{
			Parent: "studies/calls", ClientId: id, Count: 1, Wait: durationpb.New(time.Second),
		}))
		if err != nil {
			time.Sleep(20 * time.Millisecond) // between leaders
			continue
		}
		if answer.Msg.GetStudyState() != fantasiav1.StudyState_STUDY_STATE_RUNNING {
			return nil
		}
		for _, t := range answer.Msg.GetTrials() {
			value := rand.New(rand.NewPCG(testseed.Get(), uint64(t.GetNumber()))).Float64()
			if err := c.tellValue(ctx, id, t.GetNumber(), value); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// tellValue tells a value until a coordinator acknowledges it.
func (c *tellers) tellValue(ctx context.Context, id string, trial int32, value float64) error {
	for {
		_, err := c.api().CompleteTrial(ctx, connect.NewRequest(&fantasiav1.CompleteTrialRequest{
			Name: fmt.Sprintf("studies/calls/trials/%d", trial), ClientId: id, Values: []float64{value},
		}))
		switch {
		case err == nil:
			c.mu.Lock()
			defer c.mu.Unlock()
			if before, again := c.told[trial]; again {
				return fmt.Errorf("trial %d was handed out again after %v was acknowledged", trial, before)
			}
			c.told[trial] = value
			return nil
		case connect.CodeOf(err) == connect.CodeFailedPrecondition || ctx.Err() != nil: // its lease has ended
			return ctx.Err()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// api returns one coordinator after another.
func (c *tellers) api() fantasiav1connect.StudyServiceClient {
	return c.apis[int(c.calls.Add(1))%len(c.apis)]
}

// TestNoCallIsLostAtAnyStep kills the leader before and after the commit for which a caller of
// the API waits: what was acknowledged is in the ledger, and what was not counts once.
func TestNoCallIsLostAtAnyStep(t *testing.T) {
	t.Parallel()
	f := startFaulty(t, 3, 0, 0)
	f.Create(fmt.Sprintf(callsStudy, endless))
	c := &tellers{told: map[int32]float64{}}
	for address := range f.Coordinators {
		c.apis = append(c.apis, fantasiav1connect.NewStudyServiceClient(f.HTTP, "http://"+address))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	for n := range 4 {
		clients.Go(func() {
			if err := c.work(ctx, fmt.Sprintf("client-%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, p := range steps["call"] {
		for _, hit := range hits("call") {
			f.killed(p, hit, nil).Relaunch()
		}
	}
	var trials int
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		s, err := f.Ledger.Study(ctx, "calls")
		if err != nil {
			return err
		}
		trials = s.Status.Counts.Ended() + s.Status.Counts.Open() + 50
		_, err = f.Client().UpdateStudy(ctx,
			connect.NewRequest(&fantasiav1.UpdateStudyRequest{Name: "studies/calls", StudyFile: fmt.Sprintf(callsStudy, trials)}))
		return err
	})
	s, _ := f.Await("calls", trials)
	clients.Wait()
	stored, err := f.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Status.Counts.Completed; s.Status.State != study.Completed || n != trials || len(stored.Trials) != trials ||
		s.Status.Position != int64(2*trials) {
		t.Errorf("the study is %s with %d completed trials of %d, at position %d; want %d, each created once and told once",
			s.Status.State, n, len(stored.Trials), s.Status.Position, trials)
	}
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		if value, ok := c.told[int32(tr.Number)]; ok && tr.Values.First() != value {
			t.Errorf("trial %d has the value %v, but %v was acknowledged", tr.Number, tr.Values.First(), value)
		}
		delete(c.told, int32(tr.Number))
	}
	if len(c.told) > 0 {
		t.Errorf("these were acknowledged, and are not in the ledger: %v", c.told)
	}
}
