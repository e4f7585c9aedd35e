package coordinatornode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/fantasia-hpo/fantasia/internal/app/access"
)

// EtcdAccess is a coordinator's identity to etcd. The zero value has no identity, and
// TLS with the system's certificates only if an address starts with https.
type EtcdAccess struct {
	TLS      access.Files
	Password access.Password
}

// Flags adds the flags.
func (e *EtcdAccess) Flags(f *pflag.FlagSet) {
	e.TLS.Flags(f, "etcd", "etcd")
	e.Password.Flags(f, "etcd", "etcd")
}

// Config returns a function that configures a client of the endpoints. It checks every
// file now; they are read again for each connection and each log-in. The reasons of
// failed log-ins are logged.
func (e *EtcdAccess) Config(endpoints []string, log *slog.Logger) (func(*clientv3.Config), error) {
	e.TLS.Flag, e.Password.Flag = "etcd", "etcd"
	if err := errors.Join(e.TLS.Check(), e.Password.Check()); err != nil {
		return nil, err
	}
	secure := 0
	for _, endpoint := range endpoints {
		if shown := access.Shown(endpoint); shown != endpoint && !strings.HasPrefix(endpoint, "unix") {
			return nil, fmt.Errorf("--etcd %q has a login before the host, which etcd ignores; give --etcd-user and --etcd-password-file", shown)
		}
		if strings.HasPrefix(endpoint, "https://") || strings.HasPrefix(endpoint, "unixs:") {
			secure++
		}
	}
	if secure != 0 && secure != len(endpoints) {
		return nil, fmt.Errorf("--etcd %q: want https:// for all addresses or for none", endpoints)
	}
	if secure == 0 && e.TLS.Given() {
		return nil, fmt.Errorf("--etcd %q: want https:// addresses with --etcd-ca or --etcd-cert", endpoints)
	}
	initial := ""
	if e.Password.User != "" {
		initial, _ = e.Password.Read() // checked above
	}
	return func(c *clientv3.Config) {
		if secure != 0 {
			c.DialOptions = append(c.DialOptions, grpc.WithTransportCredentials(&fresh{tls: e.TLS}))
		}
		if e.Password.User != "" {
			c.Username, c.Password = e.Password.User, initial
			in := &logIn{password: e.Password, log: access.NewReasons(log)}
			c.DialOptions = append(c.DialOptions, grpc.WithChainUnaryInterceptor(in.intercept))
		}
	}, nil
}

// logIn puts the password of now into requests to log in.
//
// A new client logs in before it is of any use, and gives up where etcd is not
// there yet. So its first log-in is only said to have succeeded; requests are then
// answered, here, as by a server that misses a name, whereupon the client logs in.
type logIn struct {
	password access.Password
	log      *access.Reasons
	skipped  atomic.Bool // the first log-in
	in       atomic.Bool
}

func (l *logIn) intercept(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
	o ...grpc.CallOption) error {
	r, ok := req.(*etcdserverpb.AuthenticateRequest)
	switch {
	case ok && l.skipped.CompareAndSwap(false, true):
		return nil
	case !ok && !l.in.Load():
		return rpctypes.ErrGRPCUserEmpty
	case !ok:
		return invoke(ctx, method, req, reply, c, o...)
	}
	password, err := l.password.Read()
	if err == nil {
		r.Password = password
		err = invoke(ctx, method, req, reply, c, o...)
	}
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled) {
		l.log.Say("cannot log in to etcd", err)
		return err
	}
	l.in.Store(true)
	l.log.Forget()
	return err
}

// fresh is TLS whose files are read again for each connection.
type fresh struct {
	tls  access.Files
	name string // to check certificates against instead of the address
}

var _ credentials.TransportCredentials = (*fresh)(nil)

// ClientHandshake implements credentials.TransportCredentials.
func (f *fresh) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := f.tls.Config()
	if err != nil {
		return nil, nil, err
	}
	config.ServerName = f.name
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, c)
}

// ServerHandshake implements credentials.TransportCredentials; a client has none.
func (f *fresh) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (f *fresh) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (f *fresh) Clone() credentials.TransportCredentials {
	clone := *f
	return &clone
}

// OverrideServerName implements credentials.TransportCredentials.
func (f *fresh) OverrideServerName(name string) error {
	f.name = name
	return nil
}
