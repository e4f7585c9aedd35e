package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

func digest(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

// tokens reads a file of tokens with these lines.
func tokens(t *testing.T, lines ...string) (*server.Tokens, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := server.ReadTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return all, file
}

// bear returns a client that sends a token; none if it is empty.
func bear(t *testing.T, address, protocol, token string, o ...connect.ClientOption) client {
	t.Helper()
	p := protocols[protocol]
	var speaks http.Protocols
	speaks.SetHTTP1(!p.h2)
	speaks.SetUnencryptedHTTP2(p.h2)
	transport := &http.Transport{Protocols: &speaks}
	t.Cleanup(transport.CloseIdleConnections)
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: testenv.Bearer{Next: transport, Token: token}},
		"http://"+address, append(slices.Clone(p.options), o...)...)
}

// calls returns calls of all procedures for a study, given by its name or id, and for its
// trial 1, and says which of them write.
var calls = []struct {
	name   string
	writes bool
	call   func(ctx context.Context, c client, study, name string) error
}{
	{"GetStudy", false, func(ctx context.Context, c client, study, name string) error {
		_, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/" + study}))
		return err
	}},
	{"WatchStudy", false, func(ctx context.Context, c client, study, name string) error {
		s, err := c.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/" + study}))
		return first(s, err)
	}},
	{"ListTrials", false, func(ctx context.Context, c client, study, name string) error {
		_, err := c.ListTrials(ctx, connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: "studies/" + study}))
		return err
	}},
	{"ListOptimalTrials", false, func(ctx context.Context, c client, study, name string) error {
		_, err := c.ListOptimalTrials(ctx, connect.NewRequest(&fantasiav1.ListOptimalTrialsRequest{Parent: "studies/" + study}))
		return err
	}},
	{"GetTrial", false, func(ctx context.Context, c client, study, name string) error {
		_, err := c.GetTrial(ctx, connect.NewRequest(&fantasiav1.GetTrialRequest{Name: "studies/" + study + "/trials/1"}))
		return err
	}},
	{"WatchTrials", false, func(ctx context.Context, c client, study, name string) error {
		s, err := c.WatchTrials(ctx, connect.NewRequest(&fantasiav1.WatchTrialsRequest{Parent: "studies/" + study, IncludeExisting: true}))
		return first(s, err)
	}},
	{"ListMeasurements", false, func(ctx context.Context, c client, study, name string) error {
		_, err := c.ListMeasurements(ctx, connect.NewRequest(&fantasiav1.ListMeasurementsRequest{Parent: "studies/" + study + "/trials/1"}))
		return err
	}},
	{"WatchTrials with measurements", false, func(ctx context.Context, c client, study, name string) error {
		s, err := c.WatchTrials(ctx, connect.NewRequest(&fantasiav1.WatchTrialsRequest{
			Parent: "studies/" + study, IncludeExisting: true, IncludeMeasurements: true,
		}))
		return first(s, err)
	}},
	{"UpdateStudy", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.UpdateStudy(ctx, connect.NewRequest(&fantasiav1.UpdateStudyRequest{Name: "studies/" + study, StudyFile: named(name)}))
		return err
	}},
	{"TailTrialLogs", false, func(ctx context.Context, c client, study, name string) error {
		return first(c.TailTrialLogs(ctx, connect.NewRequest(&fantasiav1.TailTrialLogsRequest{Name: "studies/" + study + "/trials/1"})))
	}},
	{"StopStudy", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/" + study}))
		return err
	}},
	{"ResumeStudy", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.ResumeStudy(ctx, connect.NewRequest(&fantasiav1.ResumeStudyRequest{Name: "studies/" + study}))
		return err
	}},
	{"StopStudy after it", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/" + study}))
		return err
	}},
	{"ArchiveStudy", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.ArchiveStudy(ctx, connect.NewRequest(&fantasiav1.ArchiveStudyRequest{Name: "studies/" + study}))
		return err
	}},
	{"UnarchiveStudy", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.UnarchiveStudy(ctx, connect.NewRequest(&fantasiav1.UnarchiveStudyRequest{Name: "studies/" + study}))
		return err
	}},
	{"CreateStudy", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named(name)}))
		return err
	}},
	{"DeleteStudy", true, func(ctx context.Context, c client, study, name string) error {
		_, err := c.DeleteStudy(ctx, connect.NewRequest(&fantasiav1.DeleteStudyRequest{Name: "studies/" + study, Force: true}))
		return err
	}},
}

// first is the error of a stream's first message.
func first[T any](s *connect.ServerStreamForClient[T], err error) error {
	if err != nil {
		return err
	}
	s.Receive()
	return errors.Join(s.Err(), s.Close())
}

// Each token allows exactly the procedures that it should, on a study that it covers and
// on another one, by name and by id.
func TestTokens(t *testing.T) {
	const denied, unknown, hidden = connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeNotFound
	all, _ := tokens(t, "# name hash role prefixes", "reader "+digest("reader")+" read", "",
		"writer "+digest("writer")+" write", "team "+digest("team")+" write team-,group-", "guest "+digest("guest")+" read team-")
	for _, test := range []struct {
		token, study        string
		read, write, create connect.Code // 0 is success
	}{
		{"", "team-a", unknown, unknown, unknown},
		{"somebody's", "team-a", unknown, unknown, unknown},
		{"reader", "team-a", 0, denied, denied},
		{"reader", "other", 0, denied, denied},
		{"writer", "team-a", 0, 0, connect.CodeAlreadyExists},
		{"writer", "other", 0, 0, connect.CodeAlreadyExists},
		{"team", "team-a", 0, 0, connect.CodeAlreadyExists},
		{"team", "other", hidden, hidden, denied},
		{"guest", "team-a", 0, denied, denied},
		{"guest", "other", hidden, denied, denied},
	} {
		for _, protocol := range []string{"connect", "grpc"} {
			for _, byID := range []bool{false, true} {
				backend := servertest.New(t)
				s := create(t, backend, test.study)
				backend.Put(test.study, evaluated(1, 0.5))
				backend.PutLog(test.study, 1, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: []byte("a line\n")})
				c := bear(t, serve(t, backend, server.Options{Tokens: all}), protocol, test.token)
				study := test.study
				if byID {
					study = s.Spec.ID
				}
				for _, call := range calls {
					want := test.read
					switch {
					case call.name == "CreateStudy":
						want = test.create
					case call.writes:
						want = test.write
					}
					check(t, call.call(within(t), c, study, test.study), want, "%s: %s of %s as %q", protocol, call.name, study, test.token)
				}
			}
		}
	}
}

// A token may only learn from studies that it may read.
func TestTokensLimitWhatIsLearnt(t *testing.T) {
	all, _ := tokens(t, "team "+digest("team")+" write team-", "writer "+digest("writer")+" write")
	backend := servertest.New(t)
	for _, name := range []string{"team-march", "other"} {
		create(t, backend, name)
		for n := range study.MinEarlierTrials {
			backend.Put(name, evaluated(n+1, 0.5))
		}
	}
	address := serve(t, backend, server.Options{Tokens: all})
	learns := func(name, from string) *connect.Request[fantasiav1.CreateStudyRequest] {
		file := strings.Replace(named(name), "  budget:", "  learnFrom: [{study: "+from+"}]\n  budget:", 1)
		file = strings.Replace(file, "name: random", "name: gp", 1)
		return connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file})
	}
	c := bear(t, address, "connect", "team")
	_, err := c.CreateStudy(within(t), learns("team-a", "other"))
	check(t, err, connect.CodeNotFound, "learn from another team's study")
	_, err = c.CreateStudy(within(t), learns("team-b", "none"))
	check(t, err, connect.CodeNotFound, "learn from no study")
	_, err = c.CreateStudy(within(t), learns("team-c", "team-march"))
	check(t, err, 0, "learn from a study of the team")
	_, err = bear(t, address, "connect", "writer").CreateStudy(within(t), learns("d", "other"))
	check(t, err, 0, "learn from any study")
}

// check fails the test where an error has not the code; 0 is none.
func check(t *testing.T, err error, want connect.Code, doing string, args ...any) {
	t.Helper()
	if err == nil && want != 0 || err != nil && connect.CodeOf(err) != want {
		t.Errorf("%s: %v, want code %d", fmt.Sprintf(doing, args...), err, want)
	}
}

// page is the names on a page of a list, and the token of the next page.
type page struct {
	names []string
	next  string
}

func pageOf[M interface{ GetName() string }](list []M, next string) page {
	p := page{next: next}
	for _, m := range list {
		p.names = append(p.names, m.GetName())
	}
	return p
}

// pages returns the names on all pages.
func pages(t *testing.T, get func(token string) (page, error)) (names []string) {
	t.Helper()
	for token := ""; ; {
		p, err := get(token)
		if err != nil {
			t.Fatal(err)
		}
		if names = append(names, p.names...); p.next == "" {
			return names
		}
		token = p.next
	}
}

// A list holds the studies that the token covers, page by page.
func TestTokensLimitLists(t *testing.T) {
	backend := servertest.New(t)
	for _, name := range []string{"a", "group-1", "m", "team-1", "team-2", "z"} {
		create(t, backend, name)
	}
	all, _ := tokens(t, "team "+digest("team")+" read team-,group-", "reader "+digest("reader")+" read")
	address := serve(t, backend, server.Options{Tokens: all})
	for token, want := range map[string][]string{
		"team":   {"studies/group-1", "studies/team-1", "studies/team-2"},
		"reader": {"studies/a", "studies/group-1", "studies/m", "studies/team-1", "studies/team-2", "studies/z"},
	} {
		c := bear(t, address, "connect", token)
		for _, size := range []int32{1, 2, 100} {
			got := pages(t, func(token string) (page, error) {
				list, err := c.ListStudies(within(t), connect.NewRequest(&fantasiav1.ListStudiesRequest{PageSize: size, PageToken: token}))
				if err != nil {
					return page{}, err
				}
				return pageOf(list.Msg.GetStudies(), list.Msg.GetNextPageToken()), nil
			})
			if !slices.Equal(got, want) {
				t.Errorf("%s, pages of %d: %q, want %q", token, size, got, want)
			}
		}
	}
}

// An archive holds the studies that the token covers, page by page, and nobody brings back
// another one.
func TestTokensLimitTheArchive(t *testing.T) {
	backend := servertest.New(t)
	for _, name := range []string{"a", "team-1", "team-2", "z"} {
		create(t, backend, name)
		if _, err := backend.Stop(within(t), name, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := backend.Archive(within(t), name); err != nil {
			t.Fatal(err)
		}
	}
	all, _ := tokens(t, "team "+digest("team")+" write team-", "reader "+digest("reader")+" read")
	address := serve(t, backend, server.Options{Tokens: all})
	for token, want := range map[string][]string{
		"team":   {"studies/team-1", "studies/team-2"},
		"reader": {"studies/a", "studies/team-1", "studies/team-2", "studies/z"},
	} {
		c := bear(t, address, "connect", token)
		for _, size := range []int32{1, 2, 100} {
			got := pages(t, func(token string) (page, error) {
				list, err := c.ListArchivedStudies(within(t),
					connect.NewRequest(&fantasiav1.ListArchivedStudiesRequest{PageSize: size, PageToken: token}))
				if err != nil {
					return page{}, err
				}
				return pageOf(list.Msg.GetStudies(), list.Msg.GetNextPageToken()), nil
			})
			if !slices.Equal(got, want) {
				t.Errorf("%s, pages of %d: %q, want %q", token, size, got, want)
			}
		}
	}
	c := bear(t, address, "connect", "team")
	_, err := c.UnarchiveStudy(within(t), connect.NewRequest(&fantasiav1.UnarchiveStudyRequest{Name: "studies/z"}))
	check(t, err, connect.CodeNotFound, "bring back another team's study")
	_, err = c.UnarchiveStudy(within(t), connect.NewRequest(&fantasiav1.UnarchiveStudyRequest{Name: "studies/team-2"}))
	check(t, err, 0, "bring back the own study")
}

// A list of workers has what they run of the studies that the token covers.
func TestTokensLimitWhatWorkersRun(t *testing.T) {
	backend := servertest.New(t)
	mine, other := create(t, backend, "team-1").Spec.ID, create(t, backend, "other").Spec.ID
	running := []messaging.AttemptID{{Study: mine, Trial: 1, Attempt: 1}, {Study: other, Trial: 2, Attempt: 1},
		{Study: "deleted", Trial: 3, Attempt: 1}}
	beat := messaging.Heartbeat{Worker: "w1", Pool: "default", Slots: 4, Running: running}
	beat.SetWaiting(map[messaging.AttemptID]string{running[0]: "mine", running[1]: "secret"})
	backend.SetWorkers(coordinator.Worker{Heartbeat: beat})
	all, _ := tokens(t, "team "+digest("team")+" read team-", "reader "+digest("reader")+" read")
	address := serve(t, backend, server.Options{Tokens: all})
	for token, want := range map[string][]string{
		"team":   {"studies/" + mine + "/trials/1"},
		"reader": {"studies/" + mine + "/trials/1", "studies/" + other + "/trials/2", "studies/deleted/trials/3"},
	} {
		list, err := bear(t, address, "connect", token).ListWorkers(within(t), connect.NewRequest(&fantasiav1.ListWorkersRequest{}))
		if err != nil || len(list.Msg.GetWorkers()) != 1 {
			t.Fatalf("%s: %v, %v", token, list, err)
		}
		var got []string
		for _, r := range list.Msg.GetWorkers()[0].GetRunning() {
			got = append(got, r.GetTrial())
			if r.GetWaiting() == "secret" && token == "team" || r.GetTrial() == want[0] && r.GetWaiting() != "mine" {
				t.Errorf("%s is told that %s waits for %q", token, r.GetTrial(), r.GetWaiting())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s sees %q, want %q", token, got, want)
		}
	}
}

// A forwarded request carries the caller's token to the leader.
func TestForwardedRequestsBearTheToken(t *testing.T) {
	backend := servertest.New(t)
	all, _ := tokens(t, "writer "+digest("writer")+" write", "reader "+digest("reader")+" read")
	listeners := []net.Listener{listen(t), listen(t)}
	leader := listeners[0].Addr().String()
	for i, l := range listeners {
		_, stop := start(t, l, backend, server.Options{Tokens: all,
			Leader: func(context.Context) (string, bool, error) { return leader, i == 0, nil }})
		t.Cleanup(stop)
	}
	for token, want := range map[string]connect.Code{"writer": 0, "reader": connect.CodePermissionDenied, "": connect.CodeUnauthenticated} {
		c := bear(t, listeners[1].Addr().String(), "connect", token)
		_, err := c.CreateStudy(within(t), connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("s")}))
		check(t, err, want, "create as %q at the replica", token)
	}
}

// A replica that lies, or whoever claims to be one, gets no more than the token that it sends: neither
// the mark of a forwarded request nor headers that name a caller count, and a replica that does
// not lead passes a marked request on to nobody.
func TestForgedForwarding(t *testing.T) {
	backend := servertest.New(t)
	all, _ := tokens(t, "writer "+digest("writer")+" write", "reader "+digest("reader")+" read", "team "+digest("team")+" write team-")
	listeners := []net.Listener{listen(t), listen(t)}
	leader := listeners[0].Addr().String()
	for i, l := range listeners {
		_, stop := start(t, l, backend, server.Options{Tokens: all,
			Leader: func(context.Context) (string, bool, error) { return leader, i == 0, nil }})
		t.Cleanup(stop)
	}
	forge := func(h http.Header) {
		h.Set(server.ForwardedHeader, "1")
		for name, value := range map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-User": "writer", "X-Remote-User": "writer",
			"Forwarded": "for=127.0.0.1;host=localhost", "Fantasia-Caller": "writer", "Fantasia-Token": "writer",
			"X-Forwarded-Authorization": "Bearer writer"} {
			h.Set(name, value)
		}
	}
	for token, want := range map[string]connect.Code{"": connect.CodeUnauthenticated, "reader": connect.CodePermissionDenied,
		"team": connect.CodePermissionDenied, "writer": 0} {
		for i := range listeners {
			create := connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("s")})
			forge(create.Header())
			expected := want
			if i == 1 && token != "" {
				expected = connect.CodeUnavailable // it leads no more, and a marked request is not forwarded again
			}
			_, err := bear(t, listeners[i].Addr().String(), "connect", token).CreateStudy(within(t), create)
			if i == 1 && token != "writer" && err != nil {
				continue // refused, whoever looks first
			}
			check(t, err, expected, "create with forged headers as %q at replica %d", token, i)
		}
	}
	// What a lying member repeats has no other effect than the first time: a name is taken once.
	again := connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("s")})
	forge(again.Header())
	_, err := bear(t, leader, "connect", "writer").CreateStudy(within(t), again)
	check(t, err, connect.CodeAlreadyExists, "the same request again")
}

// A changed file takes effect; one that cannot be read changes nothing.
func TestTokensAreReadAgain(t *testing.T) {
	all, file := tokens(t, "one "+digest("first")+" read")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	who := func() (names []string) {
		for _, token := range []string{"first", "second"} {
			if g, err := all.Grant(t.Context(), token); err == nil {
				names = append(names, fmt.Sprintf("%s:%t", g.Name, g.Write))
			}
		}
		return names
	}
	now := time.Now()
	for i, step := range []struct {
		text string
		want []string
	}{
		{"two " + digest("second") + " write", []string{"two:true"}},
		{"broken", []string{"two:true"}},
		{"one " + digest("first") + " write\ntwo " + digest("second") + " read", []string{"one:true", "two:false"}},
		{"", nil},
	} {
		write(step.text, now.Add(time.Duration(i+1)*time.Second))
		if got := who(); !slices.Equal(got, step.want) {
			t.Errorf("after %q: %q, want %q", step.text, got, step.want)
		}
	}
}

func TestTokensNameTheLine(t *testing.T) {
	good := "a " + digest("a") + " read"
	for _, test := range []struct{ text, want string }{
		{"a", ":1: got 1 words"},
		{good + "\n\n# x\nb " + digest("b") + " admin", `:4: role "admin" of b`},
		{"a " + digest("a")[1:] + " read", ":1: hash of a"},
		{"a " + digest("a") + "00 read", ":1: hash of a"},
		{"a secret read", ":1: hash of a"},
		{"a.b " + digest("a") + " read", `:1: name "a.b"`},
		{good + " x,,y", ":1: prefixes"},
		{good + " x studies=many", `:1: quotas of a: quota studies: got "many"; want a whole number`},
		{good + " x workers=5", `:1: quotas of a: quota "workers=5": want QUOTA=NUMBER, where QUOTA is one of studies`},
		{good + " x y studies=5", ":1: got 5 words"},
		{good + "\nb " + digest("a") + " write", ":2: b has the same token as a"},
		{good + "\n" + strings.Repeat("secret", 100_000), ":2: the line is longer than 64 KiB"},
	} {
		file := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := server.ReadTokens(file, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), file+test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want an error with %q", test.text, err, test.want)
		}
	}
	if _, err := server.ReadTokens(filepath.Join(t.TempDir(), "missing"), slog.New(slog.DiscardHandler)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
}

// A server that is read-only refuses every call that changes something, and needs no Writer.
func TestReadOnly(t *testing.T) {
	backend := servertest.New(t)
	create(t, backend, "s")
	backend.Put("s", evaluated(1, 0.5))
	why := fmt.Errorf("%w: kept as it is", study.ErrPrecondition)
	c := dial(t, serve(t, struct {
		server.Reader
		server.Writer
	}{Reader: backend}, server.Options{ReadOnly: why}), "connect")
	for _, call := range calls {
		if call.writes {
			err := call.call(within(t), c, "s", "s")
			if check(t, err, connect.CodeFailedPrecondition, "%s", call.name); !strings.HasSuffix(err.Error(), ": kept as it is") {
				t.Errorf("%s: %v", call.name, err)
			}
		}
	}
	for procedure, call := range clientCalls {
		check(t, call(within(t), c, "s", "s"), connect.CodeFailedPrecondition, "%s", procedure)
	}
	_, err := c.GetTrial(within(t), connect.NewRequest(&fantasiav1.GetTrialRequest{Name: "studies/s/trials/1"}))
	check(t, err, 0, "get a trial")
}
