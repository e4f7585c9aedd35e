package standalone_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: NAME}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: random}
  budget: {maxTrials: 6}
`

// server is a running server with a client of its API.
type server struct {
	standalone.Address
	fantasiav1connect.StudyServiceClient
	// stop ends it, and fails the test if it ends with an error. It may be called twice.
	stop func()
}

func serve(t testing.TB, state string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan standalone.Address, 1), make(chan error, 1)
	go func() {
		ended <- standalone.Run(ctx, standalone.Options{
			State: state, Listen: "127.0.0.1:0", Version: "test", Ready: func(a standalone.Address) { ready <- a },
		})
	}()
	s := &server{}
	select {
	case s.Address = <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the server ended: %v", err)
	}
	transport := &http.Transport{}
	s.StudyServiceClient = fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport}, s.URL)
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}
	t.Cleanup(s.stop)
	return s
}

// call repeats a call while the server has no leader yet.
func call[Q, A any](t testing.TB, f func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), q *Q) *A {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got, err := f(ctx, connect.NewRequest(q))
		if err == nil {
			return got.Msg
		}
		if connect.CodeOf(err) != connect.CodeUnavailable || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func (s *server) create(t testing.TB, name string) {
	t.Helper()
	s.createFrom(t, strings.Replace(file, "NAME", name, 1))
}

func (s *server) createFrom(t testing.TB, file string) {
	t.Helper()
	call(t, s.CreateStudy, &fantasiav1.CreateStudyRequest{StudyFile: file})
}

func (s *server) ask(t testing.TB, study, client string) *fantasiav1.Trial {
	t.Helper()
	got := call(t, s.SuggestTrials,
		&fantasiav1.SuggestTrialsRequest{Parent: "studies/" + study, ClientId: client, Wait: durationpb.New(10 * time.Second)})
	if len(got.GetTrials()) != 1 {
		t.Fatalf("asked %s, got %v, want one trial", study, got)
	}
	return got.GetTrials()[0]
}

func (s *server) tellValue(t testing.TB, trial *fantasiav1.Trial, client string, value float64) {
	t.Helper()
	call(t, s.CompleteTrial, &fantasiav1.CompleteTrialRequest{Name: trial.GetName(), ClientId: client, Values: []float64{value}})
}

// A server's archive is in its state directory: a study that one server archived comes back
// to the next one with its trials.
func TestArchiveOutlivesTheServer(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	s := serve(t, state)
	s.create(t, "done")
	s.tellValue(t, s.ask(t, "done", "me"), "me", 0.5)
	call(t, s.StopStudy, &fantasiav1.StopStudyRequest{Name: "studies/done"})
	if got := call(t, s.ArchiveStudy, &fantasiav1.ArchiveStudyRequest{Name: "studies/done"}).GetStudy(); got.GetName() != "studies/done" ||
		got.GetTrials() == 0 {
		t.Errorf("archived %v", got)
	}
	s.stop()
	s = serve(t, state)
	if list := call(t, s.ListStudies, &fantasiav1.ListStudiesRequest{}).GetStudies(); len(list) != 0 {
		t.Errorf("the server still has %v", list)
	}
	if list := call(t, s.ListArchivedStudies, &fantasiav1.ListArchivedStudiesRequest{}).GetStudies(); len(list) != 1 ||
		list[0].GetName() != "studies/done" {
		t.Errorf("the archive has %v", list)
	}
	if got := call(t, s.UnarchiveStudy, &fantasiav1.UnarchiveStudyRequest{Name: "studies/done"}).
		GetStudy(); got.GetState() != fantasiav1.StudyState_STUDY_STATE_STOPPED {
		t.Errorf("the study is %v", got.GetState())
	}
	trial := call(t, s.GetTrial, &fantasiav1.GetTrialRequest{Name: "studies/done/trials/1"}).GetTrial()
	if v := trial.GetValues(); len(v) != 1 || v[0] != 0.5 {
		t.Errorf("trial 1 has the values %v", v)
	}
}

// A server continues what the last one in its directory knew, and a client goes on with
// the trial that it holds.
func TestServerGoesOn(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	s := serve(t, state)
	s.create(t, "mine")
	s.tellValue(t, s.ask(t, "mine", "a"), "a", 0.5)
	open := s.ask(t, "mine", "a")
	s.stop()
	if at, err := standalone.Served(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the address of a server that has ended: %v, %v", at, err)
	}

	s = serve(t, state)
	if again := s.ask(t, "mine", "a"); again.GetName() != open.GetName() || len(again.GetAttempts()) != 1 {
		t.Errorf("a got %v, want its %v", again, open)
	}
	s.tellValue(t, open, "a", 0.25)
	got := call(t, s.GetStudy, &fantasiav1.GetStudyRequest{Name: "studies/mine"}).GetStudy()
	if got.GetTrials().GetCompleted() != 2 || got.GetBest().GetValue() != 0.25 {
		t.Errorf("the study is %v, want two completed trials and the best value 0.25", got)
	}
}

// Two servers cannot open one directory; the second one learns who has it.
func TestDirectoryIsHeld(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	first := serve(t, state)
	err := standalone.Run(t.Context(), standalone.Options{State: state, Listen: "127.0.0.1:0", Ready: func(standalone.Address) {}})
	if !errors.Is(err, local.ErrInUse) {
		t.Fatalf("a second server: %v", err)
	}
	at, err := standalone.Served(state)
	if err != nil || at != first.Address || at.PID != os.Getpid() || !filepath.IsAbs(at.State) {
		t.Errorf("the directory is served at %+v, %v; want %+v", at, err, first.Address)
	}
}

// Commands read the state with a server and without one.
func TestStateIsRead(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	names := func() (idle bool, names []string) {
		t.Helper()
		c, err := local.Connect(t.Context(), state)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		client := fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: c.Transport}, "http://state")
		for token := ""; ; {
			page := call(t, client.ListStudies, &fantasiav1.ListStudiesRequest{PageSize: 1, PageToken: token})
			for _, s := range page.GetStudies() {
				names = append(names, s.GetName())
			}
			if token = page.GetNextPageToken(); token == "" {
				return c.Idle, names
			}
		}
	}
	s := serve(t, state)
	s.create(t, "one")
	s.create(t, "two")
	const want = "studies/one studies/two"
	if idle, got := names(); idle || strings.Join(got, " ") != want {
		t.Errorf("beside a server: idle %v, %v, want %s", idle, got, want)
	}
	s.stop()
	if idle, got := names(); !idle || strings.Join(got, " ") != want {
		t.Errorf("without a server: idle %v, %v, want %s", idle, got, want)
	}
}

// The state of fantasia run is not served: its trials would wait for workers forever.
func TestStateOfARunIsRefused(t *testing.T) {
	state := t.TempDir()
	if err := os.Mkdir(filepath.Join(state, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := standalone.Run(t.Context(), standalone.Options{State: state, Listen: "127.0.0.1:0", Ready: func(standalone.Address) {}})
	if !errors.Is(err, standalone.ErrRun) || !strings.Contains(err.Error(), state) {
		t.Errorf("the state of a run: %v", err)
	}
}

// A server that cannot listen leaves nothing open.
func TestPortInUse(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "state"))
	other := filepath.Join(t.TempDir(), "other")
	err := standalone.Run(t.Context(),
		standalone.Options{State: other, Listen: strings.TrimPrefix(s.URL, "http://"), Ready: func(standalone.Address) {}})
	if err == nil || !strings.Contains(err.Error(), "listen for the API") {
		t.Errorf("a port in use: %v", err)
	}
	serve(t, other)
}
