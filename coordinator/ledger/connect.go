package ledger

import (
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// reconnect limits the pauses between attempts to connect. With gRPC's own, a client
// that is started with its etcd waits for seconds, and one whose etcd was away for long
// for up to two minutes.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// Connect returns a client of the etcd cluster at the endpoints, with settings that
// detect a hanging member: gRPC pings it every 10 s (the shortest interval that gRPC
// allows) and waits 3 s for the answer. Options change the configuration further, for
// TLS and credentials. Connect does not wait for a connection. The caller closes the
// client.
func Connect(endpoints []string, options ...func(*clientv3.Config)) (*clientv3.Client, error) {
	config := clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(reconnect)},
		Logger:               zap.NewNop(),
	}
	for _, option := range options {
		option(&config)
	}
	c, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %q: %w", endpoints, err)
	}
	return c, nil
}
