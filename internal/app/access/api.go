package access

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/api/server"
)

// API is how a coordinator shows who it is to callers of its API, and who they
// must be; the zero value is in the clear, for everybody.
type API struct {
	// TLS has the coordinator's certificate, and the authorities that have signed
	// the other replicas'.
	TLS Files
	// Tokens is the file of what bearers may do (see server.Tokens).
	Tokens string
}

// Flags adds the flags.
func (a *API) Flags(f *pflag.FlagSet) {
	f.StringVar(&a.TLS.Cert, "tls-cert", "", "file of the API's certificate, in PEM; turns TLS on")
	f.StringVar(&a.TLS.Key, "tls-key", "", "file of the certificate's key, in PEM")
	f.StringVar(&a.TLS.CA, "tls-ca", "", "file of the certificates that the other replicas' must be signed by, in PEM (default: the system's)")
	f.StringVar(&a.Tokens, "tokens", "", "file of the tokens that callers must bear: NAME SHA256 read|write [PREFIX,…] a line (default: everybody may do everything)")
}

// Secure reports whether the API speaks TLS.
func (a *API) Secure() bool { return a.TLS.Cert != "" }

// Options checks every file and completes the API's options.
func (a *API) Options(o *server.Options, log *slog.Logger) error {
	a.TLS.flag = "tls"
	if err := a.TLS.check(); err != nil {
		return err
	}
	if a.TLS.CA != "" {
		roots, err := a.TLS.roots()
		if err != nil {
			return err
		}
		o.ForwardTLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	if a.Tokens == "" {
		return nil
	}
	if !a.Secure() {
		log.Warn("tokens are sent in the clear, unless something before the API adds TLS", "flag", "--tls-cert")
	}
	tokens, err := server.ReadTokens(a.Tokens, log)
	if err != nil {
		return fmt.Errorf("--tokens: %w", err)
	}
	o.Tokens = tokens
	return nil
}

// Listener is the listener, with TLS where the API speaks it. The certificate is
// read again for each connection.
func (a *API) Listener(l net.Listener) net.Listener {
	if !a.Secure() {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			own, err := a.TLS.own()
			return &own, err
		},
	})
}

// Caller is who a program is to the API, and whom it trusts to be the API.
type Caller struct {
	// Token is borne with each request; empty for none.
	Token string
	// CA has the certificates that the API's must be signed by; empty for the
	// system's.
	CA string
}

// Flags adds the flags.
func (c *Caller) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.Token, "token", "", "token to show to the server; better in FANTASIA_TOKEN, where other users of this machine do not see it")
	f.StringVar(&c.CA, "ca", "", "`file` of the certificates that the server's must be signed by, in PEM (default: the system's)")
}

// TLS is how to speak to a server whose address begins with https://.
func (c *Caller) TLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA == "" {
		return config, nil
	}
	roots, err := (&Files{CA: c.CA}).roots()
	if err != nil {
		return nil, err
	}
	config.RootCAs = roots
	return config, nil
}
