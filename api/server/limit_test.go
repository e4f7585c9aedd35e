package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// A caller that sends too many requests is refused until time has passed; others are not.
func TestRate(t *testing.T) {
	var seconds atomic.Int64
	clock := func() time.Time { return servertest.Epoch.Add(time.Duration(seconds.Load()) * time.Second) }
	all, _ := tokens(t, "one "+digest("one")+" write", "two "+digest("two")+" read")
	address := serve(t, servertest.New(t), server.Options{Tokens: all, Now: clock, Limits: server.Limits{Rate: 2, Burst: 3}})
	list := func(c client) error {
		_, err := c.ListStudies(within(t), connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
		return err
	}
	for _, protocol := range []string{"connect", "grpc", "json-get"} {
		one, two := bear(t, address, protocol, "one"), bear(t, address, protocol, "two")
		for i := range 5 {
			want := connect.Code(0)
			if i >= 3 {
				want = connect.CodeResourceExhausted
			}
			err := list(one)
			check(t, err, want, "%s: request %d", protocol, i+1)
			if want != 0 && !strings.Contains(err.Error(), "the token one sends more than 2 requests a second") {
				t.Errorf("%s: %v, want who sends how many", protocol, err)
			}
		}
		check(t, list(two), 0, "%s: another caller", protocol)
		seconds.Add(1)
		for i, want := range []connect.Code{0, 0, connect.CodeResourceExhausted} { // two a second
			check(t, list(one), want, "%s: request %d a second later", protocol, i+1)
		}
		seconds.Add(60)
	}
}

// Without tokens, machines are callers, and who speaks no RPC is told so by HTTP.
func TestRateOfMachines(t *testing.T) {
	address := serve(t, servertest.New(t),
		server.Options{Now: func() time.Time { return servertest.Epoch }, Limits: server.Limits{Rate: 1, Burst: 1}})
	for _, want := range []int{http.StatusUnsupportedMediaType, http.StatusTooManyRequests} {
		req, err := http.NewRequestWithContext(within(t), http.MethodPost, "http://"+address+"/fantasia.v1.StudyService/ListStudies",
			strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "text/plain")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || want == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s, want %d", resp.Status, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// A flood of refused requests writes a line a second, which counts them.
func TestRefusalsAreCounted(t *testing.T) {
	var seconds atomic.Int64
	var lines bytes.Buffer
	address := serve(t, servertest.New(t), server.Options{
		Now:    func() time.Time { return servertest.Epoch.Add(time.Duration(seconds.Load()) * time.Second) },
		Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Limits: server.Limits{Rate: 1e-9, Burst: 1},
	})
	c := dial(t, address, "connect")
	for i := range 6 { // the first is allowed, and the last is a second later
		if i == 5 {
			seconds.Add(1)
		}
		_, err := c.ListStudies(within(t), connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
		if i > 0 {
			check(t, err, connect.CodeResourceExhausted, "request %d", i+1)
		}
	}
	var counts []string
	for line := range strings.Lines(lines.String()) {
		_, count, _ := strings.Cut(line, " count=")
		counts = append(counts, strings.TrimSpace(count))
	}
	if !slices.Equal(counts, []string{"1", "4"}) {
		t.Errorf("counts %q, want 1 and 4:\n%s", counts, &lines)
	}
}

// A caller has so many streams, all callers together as many as the server serves, and a
// stream that ends makes room.
func TestStreams(t *testing.T) {
	all, _ := tokens(t, "one "+digest("one")+" write streams=2", "two "+digest("two")+" read")
	backend := servertest.New(t)
	create(t, backend, "digits")
	address := serve(t, backend, server.Options{Tokens: all, Limits: server.Limits{AllStreams: 3}})
	watch := func(token string) (end func(), err error) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		stream, err := bear(t, address, "grpc", token).WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/digits"}))
		if err == nil && !stream.Receive() {
			err = stream.Err()
		}
		return cancel, err
	}
	open := func(token string, want connect.Code, says string) func() {
		t.Helper()
		end, err := watch(token)
		check(t, err, want, "a stream of %s", token)
		if want != 0 && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v, want …%s…", err, says)
		}
		return end
	}
	end := open("one", 0, "")
	open("one", 0, "")
	open("one", connect.CodeResourceExhausted, "the quota streams of the token one (at each replica) is 2; 2 are used, and this call needs "+
		"1 more: end some streams")
	open("two", 0, "")
	open("two", connect.CodeResourceExhausted, "this server has 3 streams open")
	end()
	ctx := within(t)
	for { // the server hears of the end a moment later
		again, err := watch("one")
		if err == nil {
			break
		}
		again()
		if connect.CodeOf(err) != connect.CodeResourceExhausted || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// slowFiles is a backend that reads study files only when it is told to.
type slowFiles struct {
	server.Backend
	begun, proceed chan struct{}
	now, most      atomic.Int64
}

func (s *slowFiles) Create(ctx context.Context, file []byte) (server.Study, error) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	s.begun <- struct{}{}
	<-s.proceed
	return s.Backend.Create(ctx, file)
}

// Only so many study files are read at once, of a caller and of all; a few more wait, and a
// flood is refused while other calls, and other callers, go on.
func TestStudyFiles(t *testing.T) {
	all, _ := tokens(t, "one "+digest("one")+" write", "two "+digest("two")+" write")
	backend := &slowFiles{Backend: servertest.New(t), begun: make(chan struct{}, 200), proceed: make(chan struct{})}
	address := serve(t, backend, server.Options{Tokens: all, Limits: server.Limits{Files: 1, AllFiles: 2}})
	one, two := bear(t, address, "grpc", "one"), bear(t, address, "grpc", "two")
	const flood = 80 // 64 may wait
	answers := make(chan error, flood+2)
	send := func(c client) {
		go func() {
			_, err := c.CreateStudy(within(t), connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: "kind: Study"}))
			answers <- err
		}()
	}
	send(one)
	<-backend.begun
	for range flood {
		send(one)
	}
	for range flood - 64 {
		err := <-answers
		check(t, err, connect.CodeResourceExhausted, "a study file of a flood")
		if !strings.Contains(err.Error(), "the token one has 64 study files waiting") {
			t.Errorf("%v, want who has how many", err)
		}
	}
	send(two)
	<-backend.begun // beside the flood
	_, err := two.ListStudies(within(t), connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
	check(t, err, 0, "another call")
	close(backend.proceed)
	for range 64 + 2 {
		check(t, <-answers, connect.CodeInvalidArgument, "a study file that has waited")
	}
	if most := backend.most.Load(); most != 2 {
		t.Errorf("%d files were read at once, want one of each caller", most)
	}
}

// slowCalls is a backend whose answers wait until they are told to go on.
type slowCalls struct {
	server.Backend
	begun, proceed chan struct{}
}

func (h *slowCalls) Stop(ctx context.Context, nameOrID, reason string) (server.Study, error) {
	h.begun <- struct{}{}
	<-h.proceed
	return h.Backend.Stop(ctx, nameOrID, reason)
}

// The requests of a caller that are not answered have only so many bytes, and those of all
// callers; what was answered makes room. A compressed request is not counted as its few bytes
// while nobody knows how many they become, and afterwards as what they became.
func TestBytesInFlight(t *testing.T) {
	all, _ := tokens(t, "one "+digest("one")+" write", "two "+digest("two")+" write")
	backend := &slowCalls{Backend: servertest.New(t), begun: make(chan struct{}, 9), proceed: make(chan struct{})}
	address := serve(t, backend, server.Options{Tokens: all, MaxBody: 4000, Limits: server.Limits{Bytes: 5000, AllBytes: 6500}})
	answers := make(chan error, 9)
	stop := func(token, protocol string, size int, o ...connect.ClientOption) {
		go func() {
			_, err := bear(t, address, protocol, token, o...).StopStudy(within(t), connect.NewRequest(&fantasiav1.StopStudyRequest{
				Name: "studies/digits", Reason: strings.Repeat("x", size),
			}))
			answers <- err
		}()
	}
	refused := func(says string) {
		t.Helper()
		err := <-answers
		check(t, err, connect.CodeResourceExhausted, "a request too many")
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want …%s…", err, says)
		}
	}
	packed := connect.WithSendGzip()
	stop("one", "grpc", 1000, packed) // counts as 1,000 bytes once it is unpacked
	<-backend.begun
	for range 3 {
		stop("one", "connect", 1000)
		<-backend.begun
	}
	stop("one", "connect", 1000)
	refused("of the token one that are not answered yet have more than 5000 bytes")
	stop("one", "grpc", 1000)
	refused("of the token one")
	stop("one", "connect", 10, packed)
	refused("of the token one")
	stop("two", "grpc", 1000)
	<-backend.begun // beside the flood
	stop("two", "json", 1000)
	stop("two", "json", 1000)
	refused("to this server that are not answered yet have more than 6500 bytes")
	close(backend.proceed)
	for range 6 {
		check(t, <-answers, connect.CodeNotFound, "a request within the bounds")
	}
	stop("one", "grpc", 1000, packed)
	check(t, <-answers, connect.CodeNotFound, "a request after the others were answered")
}

// waitingCalls is a backend whose suggestions wait until their caller is gone.
type waitingCalls struct {
	server.Backend
	begun chan struct{}
}

func (w *waitingCalls) Suggest(ctx context.Context, _, _ string, _ int, _ time.Duration) (coordinator.Suggestions, error) {
	w.begun <- struct{}{}
	<-ctx.Done()
	return coordinator.Suggestions{}, ctx.Err()
}

// A caller has so many calls that wait for trials, so that it cannot take the leader's places for
// them from others; its other calls, and others' calls, go on.
func TestSuggestionsAreShared(t *testing.T) {
	all, _ := tokens(t, "one "+digest("one")+" write", "two "+digest("two")+" write")
	backend := &waitingCalls{Backend: servertest.New(t), begun: make(chan struct{})}
	address := serve(t, backend, server.Options{Tokens: all, Limits: server.Limits{Suggestions: 2}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 9)
	ask := func(token string) {
		_, err := bear(t, address, "grpc", token).SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{
			Parent: "studies/digits", ClientId: "a", Count: 1,
		}))
		ended <- err
	}
	for range 2 {
		go ask("one")
		<-backend.begun
	}
	go ask("one")
	err := <-ended
	check(t, err, connect.CodeResourceExhausted, "a third call of a caller")
	if err == nil || !strings.Contains(err.Error(), "the token one has 2 calls that wait for trials") {
		t.Errorf("%v, want who has how many", err)
	}
	go ask("two")
	<-backend.begun
	_, err = bear(t, address, "grpc", "one").ListStudies(within(t), connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
	check(t, err, 0, "another call of the caller")
	cancel()
	for range 3 {
		check(t, <-ended, connect.CodeCanceled, "a call that waited")
	}
}
