package backend

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
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/internal/test/testleader"
)

// cluster is a number of replicas with their APIs, over one etcd.
type cluster struct {
	*testleader.Cluster
	t      *testing.T
	tokens string // the file
}

// member is a replica of a cluster.
type member struct {
	c       *coordinator.Coordinator
	address string
	stop    func()
}

func newCluster(t *testing.T, tokens ...string) *cluster {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(strings.Join(tokens, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return &cluster{testleader.New(), t, file}
}

// grant is a line of the file of tokens, for a token that is its name.
func grant(name, rest string) string {
	sum := sha256.Sum256([]byte(name))
	return name + " " + hex.EncodeToString(sum[:]) + " " + rest
}

// serve starts a replica with its API.
func (c *cluster) serve() *member {
	c.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	address := listener.Addr().String()
	replica := c.Start(c.t, address, func(o *coordinator.Options) { o.LeaseTTL = 2 * time.Second })
	tokens, err := server.ReadTokens(c.tokens, slog.New(slog.DiscardHandler))
	if err != nil {
		c.t.Fatal(err)
	}
	served := New(replica.Coordinator, ledger.New(replica.Etcd.Client, ledger.Options{}))
	path, handler, err := server.New(served, server.Options{Leader: served.Leader, Tokens: tokens})
	if err != nil {
		c.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- httpserve.Serve(ctx, listener, mux, slog.New(slog.DiscardHandler)) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
		replica.Stop()
	}
	c.t.Cleanup(stop)
	return &member{replica.Coordinator, address, stop}
}

// api returns a client of a member's API with a token.
func (m *member) api(t *testing.T, token string) fantasiav1connect.StudyServiceClient {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: testenv.Bearer{Next: transport, Token: token}},
		"http://"+m.address)
}

// askedFile is a study whose trials clients evaluate.
func askedFile(name string, more ...string) string {
	return strings.Join(append([]string{
		"apiVersion: fantasia.dev/v1", "kind: Study", "metadata: {name: " + name + "}", "spec:",
		"  objective: {metric: loss, direction: minimize}", "  parameters: [{name: x, type: float, min: -1, max: 1}]",
		"  algorithm: {name: random}", "  budget: {maxTrials: 20}", "  parallelism: 10",
	}, more...), "\n") + "\n"
}

func createStudy(ctx context.Context, c fantasiav1connect.StudyServiceClient, file string) error {
	_, err := c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file}))
	return err
}

func suggestTrials(ctx context.Context, c fantasiav1connect.StudyServiceClient, study, client string, count int32) error {
	resp, err := c.SuggestTrials(ctx,
		connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/" + study, ClientId: client, Count: count}))
	if err == nil && len(resp.Msg.GetTrials()) != int(count) {
		return fmt.Errorf("got %d trials, want %d", len(resp.Msg.GetTrials()), count)
	}
	return err
}

// A call beyond a quota is refused by the leader, whichever replica it reaches, and also by the next leader. The error
// says which quota, how much of it is used, and what frees it. Another team goes on.
func TestQuotasHoldOnEachReplica(t *testing.T) {
	c := newCluster(t,
		grant("bytes", "write b- study-bytes=20KiB"), grant("team", "write team- studies=2 open-trials=3"), grant("other", "write other-"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := c.serve()
	if err := first.c.Leading(ctx); err != nil {
		t.Fatal(err)
	}
	second := c.serve()
	team := first.api(t, "team")
	for _, name := range []string{"team-1", "team-2"} {
		if err := createStudy(ctx, team, askedFile(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(suggestTrials(ctx, team, "team-1", "a", 2), suggestTrials(ctx, team, "team-2", "a", 1)); err != nil {
		t.Fatal(err)
	}
	large := askedFile("b-1", "  trial: {command: [sh, -c, '"+strings.Repeat("x", 20_000)+"']}")
	refused := func(m *member, when string) {
		t.Helper()
		for want, err := range map[string]error{
			"the quota studies of team (studies that begin with team-) is 2; 2 are used, and this call needs 1 more: " +
				"delete or archive studies": createStudy(ctx, m.api(t, "team"), askedFile("team-3")),
			"the quota open-trials of team (studies that begin with team-) is 3; 3 are used, and this call needs 1 more: " +
				"wait until trials end": suggestTrials(ctx, m.api(t, "team"), "team-2", "b", 1),
			"the quota study-bytes of bytes (studies that begin with b-) is 20KiB; 0 are used": createStudy(ctx, m.api(t, "bytes"), large),
		} {
			if connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", when, err, want)
			}
		}
		if err := suggestTrials(ctx, m.api(t, "team"), "team-1", "a", 2); err != nil {
			t.Errorf("%s: the trials that the client holds: %v", when, err)
		}
		other := "other-" + strings.ReplaceAll(when, " ", "-")
		if err := errors.Join(createStudy(ctx, m.api(t, "other"), askedFile(other)),
			suggestTrials(ctx, m.api(t, "other"), other, "a", 5)); err != nil {
			t.Errorf("%s: another team: %v", when, err)
		}
	}
	refused(first, "at the leader")
	refused(second, "at the other replica")
	listed, err := second.api(t, "team").ListQuotas(ctx, connect.NewRequest(&fantasiav1.ListQuotasRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]int64{}
	for _, q := range listed.Msg.GetQuotas() {
		used[q.GetQuota()] = q.GetUsed()
	}
	if used["studies"] != 2 || used["open-trials"] != 3 || used["study-bytes"] < 400 {
		t.Errorf("the other replica lists %v, want 2 studies and 3 open trials", used)
	}
	first.stop()
	if err := second.c.Leading(ctx); err != nil {
		t.Fatal(err)
	}
	refused(second, "at the next leader")
	if _, err := second.api(t, "team").DeleteStudy(ctx,
		connect.NewRequest(&fantasiav1.DeleteStudyRequest{Name: "studies/team-2", Force: true})); err != nil {
		t.Fatal(err)
	}
	if err := createStudy(ctx, second.api(t, "team"), askedFile("team-3")); err != nil {
		t.Errorf("once a study is deleted: %v", err)
	}
}
