package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// node holds what a server opens.
type node struct {
	dir   string
	log   *slog.Logger
	stack *lifecycle.Stack
	etcd  *embedded.Etcd
	parts coordinatornode.Parts
}

func (n *node) startEtcd(ctx context.Context) (err error) {
	n.etcd, n.parts.Etcd, err = local.StartEtcd(ctx, n.dir, n.log, n.stack)
	return err
}

func (n *node) startNATS() error {
	server, err := local.StartNATS(n.dir, n.log, n.stack)
	if err != nil {
		return err
	}
	n.parts.Bus, err = local.ConnectLeader(server, n.log, n.stack)
	return err
}

// listen opens the port, and the socket of the state directory.
func (n *node) listen(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	socket, err := local.Listen(n.dir)
	switch {
	case errors.Is(err, local.ErrLongPath):
		n.log.WarnContext(ctx, "commands with --state cannot query this server while it runs", "cause", err)
	case err != nil:
		return errors.Join(err, listener.Close())
	default:
		n.parts.Socket = socket
	}
	n.parts.Listener = listener
	return nil
}

// write stores the server's address, for those who find the directory locked, until the
// server ends.
func (n *node) write(a Address) error {
	content, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode the address: %w", err)
	}
	path := filepath.Join(n.dir, addressFile)
	if err := renameio.WriteFile(path, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the address: %w", err)
	}
	n.stack.PushClose("the address", func() error { return os.Remove(path) })
	return nil
}
