package workercli

import (
	"context"
	"fmt"
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

// A worker connects over TLS, with a password and certificates from the environment, in
// an account of its own, and evaluates a trial. Its program sees none of these
// credentials.
func TestCredentialsStayWithTheWorker(t *testing.T) {
	const secret = "not for programs"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Setenv(natsbus.PasswordVariable(natsbus.UserCoordinator), `"of the coordinator"`)
	t.Setenv(natsbus.PasswordVariable(natsbus.PoolUser("gpu")), `"`+secret+`"`)
	accounts, err := natsbus.Accounts{Pools: []string{"gpu"}}.Config()
	if err != nil {
		t.Fatal(err)
	}
	ca := testenv.NewCA(t)
	serverCert, serverKey := ca.New("server")
	server := testenv.StartNATS(t, testenv.NATSConfig{Extra: accounts +
		fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", serverCert, serverKey, ca.File)})
	if err := os.Unsetenv(natsbus.PasswordVariable(natsbus.PoolUser("gpu"))); err != nil { // nats-server has it
		t.Fatal(err)
	}
	cert, key := ca.New("client")
	nc := server.Connect(append(natsbus.ConnectOptions("coordinator"), nats.UserInfo(natsbus.UserCoordinator, "of the coordinator"),
		nats.RootCAs(ca.File), nats.ClientCert(cert, key))...)
	leader, err := natsbus.NewLeader(nc, natsbus.LeaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leader.Close() }()
	result := evaluate(ctx, t, leader)

	state, password := t.TempDir(), filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"FANTASIA_NATS": server.URL, "FANTASIA_NATS_USER": natsbus.PoolUser("gpu"), "FANTASIA_NATS_PASSWORD_FILE": password,
		"FANTASIA_NATS_CA": ca.File, "FANTASIA_NATS_CERT": cert, "FANTASIA_NATS_KEY": key,
		"FANTASIA_POOL": "gpu", "FANTASIA_NAME": "one", "FANTASIA_STATE": state,
	} {
		t.Setenv(name, value)
	}
	stopped := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() {
		cmd := New("dev", io.Discard)
		cmd.SetArgs([]string{"--", "sh", "-c", `env; ls -l /proc/self/fd; echo '{"fantasia": {"metrics": {"loss": 1}}}'`})
		stopped <- cmd.ExecuteContext(running)
	}()
	got := <-result
	stop()
	if err := <-stopped; err != nil {
		t.Errorf("the worker: %v", err)
	}
	if got.err != nil || got.result == nil || got.result.Outcome != messaging.OutcomeCompleted || got.result.Worker != "gpu.one" {
		t.Fatalf("result: %+v, %v, want a completed one of gpu.one", got.result, got.err)
	}
	output, err := os.ReadFile(filepath.Join(state, "trials", "s", "1", "1", "stdout.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(output), "FANTASIA_TRIAL=1") {
		t.Fatalf("the program's environment is not in its output:\n%s", output)
	}
	for _, word := range []string{"FANTASIA_NATS", secret, password, key, "pool-gpu"} {
		if strings.Contains(string(output), word) {
			t.Errorf("the program learns of %q:\n%s", word, output)
		}
	}
}

type outcome struct {
	result *messaging.Result
	err    error
}

// evaluate assigns a trial and returns its first result.
func evaluate(ctx context.Context, t *testing.T, leader *natsbus.Leader) <-chan outcome {
	t.Helper()
	assignment := &messaging.Assignment{AttemptID: messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1, Nonce: "n"}, Pool: "gpu",
		StudyName: "s"}
	assignment.Objective.Metric = "loss"
	for _, step := range []func() error{
		func() error { return leader.Setup(ctx, []string{"gpu"}) },
		func() error { return leader.Fence(ctx, 1) },
		func() error { return leader.Assign(ctx, []*messaging.Assignment{assignment}) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := leader.Read(ctx, messaging.StreamResult, messaging.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan outcome, 1)
	go func() {
		e, err := r.Next(ctx)
		if err == nil && e.Result != nil { // as a coordinator does after its commit
			err = leader.Control(ctx, &messaging.Control{Kind: messaging.ControlReceipt, Worker: e.Result.Worker, AttemptID: e.Result.AttemptID,
				Disposition: "folded"})
		}
		out <- outcome{e.Result, err}
	}()
	return out
}
