package ledger

import (
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Connect returns a client of the etcd cluster at the endpoints, with settings
// that make it notice a member that hangs: gRPC pings it every 10 s (the least
// that gRPC allows) and gives it 3 s to answer. Options change the
// configuration further, for TLS and credentials. It does not wait for a
// connection. Whoever asked for the client closes it.
func Connect(endpoints []string, options ...func(*clientv3.Config)) (*clientv3.Client, error) {
	config := clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
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
