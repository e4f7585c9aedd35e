package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// Remote has workers of other processes evaluate the trials of a run.
type Remote struct {
	// Listen is the address at which the workers reach NATS, as host:port. With port 0 the system
	// chooses a port.
	Listen string
	// Worker is the public NKey by which the workers of the study's pool are known.
	Worker string
	// Dir is the absolute path of the directory that holds the directory of each worker, under
	// its name without the pool.
	Dir string
	// Listening is called with the port of NATS before Run.
	Listening func(port int) error
	// Run keeps workers running until ctx ends, and then ends them. c leads the study meanwhile.
	Run func(ctx context.Context, c *coordinator.Coordinator, log *slog.Logger) error
}

// remoteFile is the file in a state directory that holds Remote.Dir, for commands that read logs.
const remoteFile = "workers"

// startRemoteNATS starts a NATS that workers of other processes reach, and connects the coordinator.
func (n *node) startRemoteNATS() error {
	r := n.o.Remote
	key, err := nkeys.CreateUser() // nobody but this process needs it
	if err != nil {
		return fmt.Errorf("make the coordinator's key: %w", err)
	}
	public, err := key.PublicKey()
	if err != nil {
		return fmt.Errorf("make the coordinator's key: %w", err)
	}
	pool := n.o.Study.Spec.Pool
	accounts, err := natsbus.Accounts{Pools: []string{pool}, Identity: map[string]string{
		natsbus.UserCoordinator: public, natsbus.PoolUser(pool): r.Worker,
	}}.Config()
	if err != nil {
		return fmt.Errorf("describe the users of NATS: %w", err)
	}
	server, err := startNATS(n.o.State, embedded.NATSOptions{Logger: n.log, Listen: r.Listen, Accounts: accounts}, n.stack)
	if err != nil {
		return err
	}
	if n.leader, err = ConnectLeader(server, n.log, n.stack, nats.Nkey(public, key.Sign)); err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(n.o.State, remoteFile), []byte(r.Dir+"\n"), 0o600); err != nil {
		return fmt.Errorf("note where the workers' files are: %w", err)
	}
	return r.Listening(server.Port())
}

// dirOf returns the directory of the worker that ran an attempt.
func (n *node) dirOf(a *record.Attempt) (string, error) {
	_, name, pooled := strings.Cut(a.Worker, ".")
	if !pooled { // the worker of this process
		return n.workerDir(), nil
	}
	dir, err := os.ReadFile(filepath.Join(n.o.State, remoteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return n.workerDir(), nil
	}
	if err != nil {
		return "", fmt.Errorf("find the workers' files: %w", err)
	}
	return filepath.Join(strings.TrimSuffix(string(dir), "\n"), name), nil
}
