package coordinatorcli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// reloaded is a nats-server with accounts for the pool default, and nats-reload beside it.
type reloaded struct {
	t        *testing.T
	server   *testenv.NATS
	accounts string // a file
	output   testenv.Text
}

func startReloaded(ctx context.Context, t *testing.T) *reloaded {
	t.Helper()
	dir := t.TempDir()
	r := &reloaded{t: t, accounts: filepath.Join(dir, "accounts.conf")}
	for _, user := range []string{"coordinator", "pool-default", "pool-gpu"} {
		t.Setenv(natsbus.PasswordVariable(user), `"password of `+user+`"`)
	}
	r.write(config(t, "--accounts-only", "--pool=default"))
	pid := filepath.Join(dir, "nats.pid")
	// The server reads includes from below the directory of its own file.
	r.server = testenv.StartNATS(t,
		testenv.NATSConfig{Extra: "pid_file: \"" + pid + "\"\ninclude \"" + strings.Repeat("../", 20) + r.accounts + "\"\n"})
	cmd := New("dev", io.Discard)
	cmd.SetErr(&r.output)
	cmd.SetArgs([]string{"nats-reload", "--file=" + r.accounts, "--pid-file=" + pid, "--monitor=" + r.server.Monitor})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("nats-reload: %v", err)
		}
	})
	return r
}

// write replaces the accounts at once, as Kubernetes does.
func (r *reloaded) write(text string) {
	r.t.Helper()
	next := r.accounts + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, r.accounts)); err != nil {
		r.t.Fatal(err)
	}
}

// connect returns a connection of a user, which must not be lost.
func (r *reloaded) connect(user string, o ...nats.Option) *nats.Conn {
	r.t.Helper()
	nc, err := nats.Connect(r.server.URL, append(o, nats.UserInfo(user, "password of "+user),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				r.t.Errorf("%s was disconnected: %v", user, err)
			}
		}))...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(nc.Close)
	return nc
}

func (r *reloaded) await(ctx context.Context, what string, f func() error) {
	r.t.Helper()
	var err error
	for {
		if err = f(); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			r.t.Fatalf("%s: %v\n%s", what, err, r.output.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A server takes a new pool's user without losing a connection, nor the request of a
// worker that waits for work. It keeps its configuration when the new one is broken.
func TestServerIsReloaded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := startReloaded(ctx, t)
	leader, err := natsbus.NewLeader(r.connect("coordinator", natsbus.ConnectOptions("coordinator")...), natsbus.LeaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Close()
	r.await(ctx, "set up", func() error { return leader.Setup(ctx, []string{"default", "gpu"}) })
	if err := leader.Fence(ctx, 1); err != nil {
		t.Fatal(err)
	}
	fetched := map[string]chan error{}
	fetch := func(pool string) {
		name := messaging.WorkerName(pool, "w")
		w, err := natsbus.NewWorker(r.connect("pool-"+pool, natsbus.WorkerConnectOptions(pool, name)...),
			natsbus.WorkerOptions{Name: name, Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close() })
		fetched[pool] = make(chan error, 1)
		go func() {
			d, err := w.Fetch(ctx)
			if err == nil {
				err = d.Ack(ctx)
			}
			fetched[pool] <- err
		}()
	}
	fetch("default")
	r.write("accounts { broken")
	r.await(ctx, "a broken configuration", func() error {
		if !strings.Contains(r.output.String(), "still uses its earlier configuration") {
			return errors.New("not reported")
		}
		return nil
	})
	r.write(config(t, "--accounts-only", "--pool=default", "--pool=gpu"))
	r.await(ctx, "a connection of the new pool", func() error {
		nc, err := nats.Connect(r.server.URL, nats.UserInfo("pool-gpu", "password of pool-gpu"))
		if err == nil {
			nc.Close()
		}
		return err
	})
	fetch("gpu")
	for i, pool := range []string{"default", "gpu"} {
		a := &messaging.Assignment{AttemptID: messaging.AttemptID{Study: "s", Trial: i + 1, Attempt: 1, Nonce: "n"}, Pool: pool, StudyName: "s"}
		a.Objective.Metric = "m"
		if err := leader.Assign(ctx, []*messaging.Assignment{a}); err != nil {
			t.Fatal(err)
		}
		if err := <-fetched[pool]; err != nil {
			t.Errorf("fetch of pool %s: %v", pool, err)
		}
	}
	if n := strings.Count(r.output.String(), "asked NATS"); n != 2 {
		t.Errorf("the server was asked %d times, want once for each change:\n%s", n, r.output.String())
	}
}
