package coordinatornode

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
)

// APIAccess is how a coordinator shows who it is to callers of its API, and who they
// must be; the zero value is in the clear, for everybody.
type APIAccess struct {
	// TLS has the coordinator's certificate, and the authorities that have signed
	// the other replicas'.
	TLS access.Files
	// Tokens is the file of what bearers may do (see server.Tokens).
	Tokens string
}

// Flags adds the flags.
func (a *APIAccess) Flags(f *pflag.FlagSet) {
	f.StringVar(&a.TLS.Cert, "tls-cert", "", "file of the API's certificate, in PEM; turns TLS on")
	f.StringVar(&a.TLS.Key, "tls-key", "", "file of the certificate's key, in PEM")
	f.StringVar(&a.TLS.CA, "tls-ca", "", "file of the certificates that the other replicas' must be signed by, in PEM (default: the system's)")
	f.StringVar(&a.Tokens, "tokens", "", "file of the tokens that callers must bear: NAME SHA256 read|write [PREFIX,…] a line (default: everybody may do everything)")
}

// Secure reports whether the API speaks TLS.
func (a *APIAccess) Secure() bool { return a.TLS.Cert != "" }

// Options checks every file and completes the API's options.
func (a *APIAccess) Options(o *server.Options, log *slog.Logger) error {
	a.TLS.Flag = "tls"
	if err := a.TLS.Check(); err != nil {
		return err
	}
	if a.TLS.CA != "" {
		roots, err := a.TLS.Roots()
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
func (a *APIAccess) Listener(l net.Listener) net.Listener {
	if !a.Secure() {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			own, err := a.TLS.Own()
			return &own, err
		},
	})
}
