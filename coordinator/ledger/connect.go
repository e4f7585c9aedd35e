package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// reconnect limits the pauses between attempts to connect. With gRPC's defaults, a client
// that starts together with etcd waits for seconds. A client whose etcd was away for long
// waits for up to two minutes.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// stranger closes a client's connections when their server does not know etcd's API.
// That is not etcd: in a cluster, an address that was just given to etcd can still lead
// somewhere else, such as to a proxy. gRPC would keep such a connection for ever.
//
// Many calls can meet such a server at once. So the addresses are those that the client began with: between the two
// calls of another one it has none, and whoever took these for its own would leave the client without any.
type stranger struct {
	mu        sync.Mutex
	client    *clientv3.Client // nil until Connect has it
	endpoints []string
}

// knows sets the client. Calls before are not looked at.
func (s *stranger) knows(c *clientv3.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client, s.endpoints = c, c.Endpoints()
}

// leave closes the client's connections.
func (s *stranger) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.SetEndpoints() // without an address gRPC closes the connections
		s.client.SetEndpoints(s.endpoints...)
	}
}

func (s *stranger) intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	if status.Code(err) == codes.Unimplemented {
		s.leave()
	}
	return err
}

// Connect returns a client of the etcd cluster at the endpoints, with settings that
// detect a hanging member: gRPC pings it every 10 s (the shortest interval that gRPC
// allows) and waits 3 s for the answer. If the server turns out not to be etcd, the client
// closes the connection, and a later call connects again. Options change the configuration
// further, for TLS and credentials. Connect does not wait for a connection. The caller
// closes the client.
func Connect(endpoints []string, options ...func(*clientv3.Config)) (*clientv3.Client, error) {
	var s stranger
	config := clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(reconnect), grpc.WithChainUnaryInterceptor(s.intercept)},
		Logger:               zap.NewNop(),
	}
	for _, option := range options {
		option(&config)
	}
	c, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %q: %w", endpoints, err)
	}
	s.knows(c)
	return c, nil
}
