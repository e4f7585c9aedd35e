package embedded

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// The keepalives are those of etcd's program.
const (
	keepaliveLeast   = 5 * time.Second
	keepaliveEvery   = 2 * time.Hour
	keepaliveTimeout = 20 * time.Second
)

// member is an etcd of one member, whose API is served on a socket.
//
// Etcd's own package embed also serves HTTP, for which nobody asks here: a gateway, metrics, and pages
// for debugging. These pages execute templates, because of which the linker would keep every exported
// method of the program (docs/internals/weight.md).
type member struct {
	*etcdserver.EtcdServer
	listener net.Listener
	api      *grpc.Server // nil before serve
	serving  sync.WaitGroup
	errs     chan error
}

// startMember starts etcd and listens on the socket, but serves nothing yet.
func startMember(cfg config.ServerConfig, socket string) (*member, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for etcd's clients: %w", err)
	}
	server, err := etcdserver.NewServer(cfg)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	server.Start()
	return &member{EtcdServer: server, listener: listener, errs: make(chan error, 1)}, nil
}

// serve serves the API. It must be called once, when the member is ready.
func (m *member) serve() {
	m.api = v3rpc.Server(m.EtcdServer, nil, nil,
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveLeast}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout}),
	)
	m.serving.Go(func() {
		if err := m.api.Serve(m.listener); err != nil {
			m.errs <- fmt.Errorf("serve etcd's API: %w", err)
		}
	})
}

// stop lets calls finish, but not for long, as watches do not end; then it stops etcd.
func (m *member) stop() {
	// A member that stops before it has written that it is the only one waits for others at its next start.
	select {
	case <-m.ReadyNotify():
	case <-m.StoppingNotify():
	}
	if m.api != nil {
		late := time.AfterFunc(m.Cfg.ReqTimeout(), m.api.Stop)
		m.api.GracefulStop()
		late.Stop()
	}
	_ = m.listener.Close() // the API has closed it, if there was one
	m.Stop()
	m.serving.Wait()
	close(m.errs)
}
