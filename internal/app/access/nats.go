package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// NATS is a program's identity to NATS. The zero value has no identity and no TLS.
// Create it with Flags or with NewNATS.
type NATS struct {
	TLS      Files
	Password Password
	// Creds is a credentials file: a JWT with its key's seed, or only a seed.
	Creds string
}

// Flags adds the flags.
func (n *NATS) Flags(f *pflag.FlagSet) {
	f.StringVar(&n.Creds, "nats-creds", "", "credentials file for NATS: a JWT with its NKey's seed, or only a seed")
	n.Password.Flags(f, "nats", "NATS")
	n.TLS.Flags(f, "nats", "NATS")
}

// Options returns the connection's options. It checks every file now; all except a bare
// seed are read again for every connection. Later errors are logged, like all other
// reasons for a missing connection.
func (n *NATS) Options(log *slog.Logger) ([]nats.Option, error) {
	n.TLS.Flag, n.Password.Flag = "nats", "nats"
	if err := errors.Join(n.TLS.Check(), n.Password.Check()); err != nil {
		return nil, err
	}
	o := &natsOptions{NATS: *n, log: NewReasons(log)}
	options := []nats.Option{
		// The server may know new credentials a moment before this program's files have
		// them.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { o.log.Say("cannot connect to NATS", err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.log.Say("NATS refuses", err) }),
		nats.ConnectHandler(func(*nats.Conn) { o.log.Forget() }),
		nats.ReconnectHandler(func(*nats.Conn) { o.log.Forget() }),
	}
	if n.Password.User != "" {
		options = append(options, nats.UserInfoHandler(o.user))
	}
	if n.Creds != "" {
		if n.Password.User != "" {
			return nil, errors.New("--nats-creds and --nats-user: set only one")
		}
		creds, err := fromFile(n.Creds)
		if err != nil {
			return nil, err
		}
		options = append(options, creds)
	}
	if n.TLS.Given() {
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if n.TLS.CA != "" {
		options = append(options, func(o *nats.Options) error { o.RootCAsCB = n.TLS.Roots; return nil })
	}
	if n.TLS.Cert != "" {
		options = append(options, func(o *nats.Options) error { o.TLSCertCB = n.TLS.Own; return nil })
	}
	return options, nil
}

// Connect connects to servers, which may be started later, until the stack is closed.
func (n *NATS) Connect(ctx context.Context, servers []string, log *slog.Logger, stack *lifecycle.Stack,
	options ...nats.Option) (*nats.Conn, error) {
	credentials, err := n.Options(log)
	if err != nil {
		return nil, err
	}
	options = append(options, nats.RetryOnFailedConnect(true))
	shown := each.Join(servers, ",", Shown)
	conn, err := nats.Connect(strings.Join(servers, ","), append(options, credentials...)...)
	if _, unreadable := errors.AsType[*url.Error](err); unreadable { // its text has the whole address
		return nil, fmt.Errorf("--nats: %s cannot be read; want addresses such as nats://localhost:4222, in which %%40 stands for an @ in a "+
			"password", shown)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", shown, err)
	}
	stack.PushClose("the connection to NATS", func() error { conn.Close(); return nil })
	if !conn.IsConnected() {
		log.WarnContext(ctx, "waiting for NATS", "servers", shown)
	}
	return conn, nil
}

// fromFile returns the option for a credentials file, which it reads once to determine
// its kind.
func fromFile(file string) (nats.Option, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--nats-creds: %w", err)
	}
	if strings.Contains(string(data), "-----BEGIN NATS USER JWT-----") {
		return nats.UserCredentials(file), nil
	}
	seed, err := nats.NkeyOptionFromSeed(file)
	if err != nil {
		return nil, fmt.Errorf("--nats-creds: %s contains neither a JWT with its seed nor a user's seed: %w", file, err)
	}
	return seed, nil
}

// natsOptions is shared by the handlers of one connection.
type natsOptions struct {
	NATS
	log *Reasons
}

// user reads the password for one attempt to connect.
func (o *natsOptions) user() (user, password string) {
	password, err := o.Password.Read()
	if err != nil {
		o.log.Say("cannot connect to NATS", err)
	}
	return o.Password.User, password
}
