package assistant_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/assistant"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

// sum is a token as a file of tokens has it.
func sum(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

// leases is an API that gives out trial 1 of any study for a minute, and counts what it hears of
// it.
type leases struct {
	fetch.Service
	beats, released atomic.Int64
	last            atomic.Int64 // of a heartbeat, in seconds of Unix
}

// GetStudy implements fetch.Service.
func (l *leases) GetStudy(context.Context, *connect.Request[fantasiav1.GetStudyRequest]) (*connect.Response[fantasiav1.GetStudyResponse],
	error) {
	return connect.NewResponse(&fantasiav1.GetStudyResponse{Study: &fantasiav1.Study{Objective: &fantasiav1.Objective{Metric: "loss"}}}), nil
}

// SuggestTrials implements fetch.Service.
func (l *leases) SuggestTrials(context.Context, *connect.Request[fantasiav1.SuggestTrialsRequest]) (
	*connect.Response[fantasiav1.SuggestTrialsResponse], error) {
	l.last.Store(time.Now().Unix())
	return connect.NewResponse(&fantasiav1.SuggestTrialsResponse{
		Trials: []*fantasiav1.Trial{{Name: "studies/s/trials/1", Number: 1, Attempts: []*fantasiav1.Attempt{{Number: 4}}}},
		Lease:  durationpb.New(time.Minute), StudyState: fantasiav1.StudyState_STUDY_STATE_RUNNING,
	}), nil
}

// HeartbeatTrials implements fetch.Service.
func (l *leases) HeartbeatTrials(_ context.Context, r *connect.Request[fantasiav1.HeartbeatTrialsRequest]) (
	*connect.Response[fantasiav1.HeartbeatTrialsResponse], error) {
	if len(r.Msg.GetTrials()) == 1 && r.Msg.GetTrials()[0] == 1 && r.Msg.GetAttempts()[0] == 4 {
		l.beats.Add(1)
		l.last.Store(time.Now().Unix())
	}
	return connect.NewResponse(&fantasiav1.HeartbeatTrialsResponse{}), nil
}

// ReleaseTrial implements fetch.Service.
func (l *leases) ReleaseTrial(context.Context, *connect.Request[fantasiav1.ReleaseTrialRequest]) (
	*connect.Response[fantasiav1.ReleaseTrialResponse], error) {
	l.released.Add(1)
	return connect.NewResponse(&fantasiav1.ReleaseTrialResponse{Trial: &fantasiav1.Trial{}}), nil
}

// asking starts a server for an API, and a client of it that holds a trial.
func asking(t *testing.T, l *leases) (s *assistant.Server, end func()) {
	t.Helper()
	s = assistant.New(assistant.Options{Place: assistant.Remote{Client: l}, Timeout: 30 * time.Second, Hold: time.Hour,
		Logger: slog.New(slog.DiscardHandler)})
	client := meet(t, transports["stdio"](t, s))
	client.call("ask", map[string]any{"study": "s"})
	return s, func() { _ = client.Close() }
}

// A trial is kept while nobody speaks of it for longer than its lease, but not for ever.
func TestLeasesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leases{}
		s, end := asking(t, l)
		for range 50 {
			time.Sleep(time.Minute)
			synctest.Wait()
			if silent := time.Now().Unix() - l.last.Load(); silent > 40 {
				t.Fatalf("the server heard nothing of the trial for %d s, and its lease is a minute", silent)
			}
		}
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		beats := l.beats.Load()
		if l.released.Load() != 1 {
			t.Errorf("after more than an hour of silence the trial was handed back %d times, want once", l.released.Load())
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if more := l.beats.Load() - beats; more > 0 {
			t.Errorf("%d heartbeats followed", more)
		}
		s.Close(t.Context())
		end()
	})
}

// A server that ends hands back what is held, so that the next one to ask gets it.
func TestEndHandsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leases{}
		s, end := asking(t, l)
		s.Close(t.Context())
		if l.released.Load() != 1 {
			t.Errorf("the trial was handed back %d times, want once", l.released.Load())
		}
		end()
	})
}
