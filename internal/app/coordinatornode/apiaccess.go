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

// APIAccess is a coordinator's identity to callers of its API, and the callers it
// accepts. The zero value has no TLS and accepts everybody.
type APIAccess struct {
	// TLS has the coordinator's certificate, and the authorities that sign the other
	// replicas' certificates.
	TLS access.Files
	// Tokens is the file of tokens and their permissions (see server.Tokens).
	Tokens string
}

// Flags adds the flags.
func (a *APIAccess) Flags(f *pflag.FlagSet) {
	f.StringVar(&a.TLS.Cert, "tls-cert", "", "PEM file of the API's certificate; enables TLS")
	f.StringVar(&a.TLS.Key, "tls-key", "", "PEM file of the certificate's key")
	f.StringVar(&a.TLS.CA, "tls-ca", "", "PEM file of the CA certificates for the other replicas (default: the system's)")
	f.StringVar(&a.Tokens, "tokens", "", "file of accepted tokens, one a line: NAME SHA256 read|write [PREFIX,…] (default: no token is required)")
}

// Secure reports whether the API uses TLS.
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
		log.Warn("tokens are sent unencrypted unless a proxy adds TLS", "flag", "--tls-cert")
	}
	tokens, err := server.ReadTokens(a.Tokens, log)
	if err != nil {
		return fmt.Errorf("--tokens: %w", err)
	}
	o.Tokens = tokens
	return nil
}

// Listener returns the listener, with TLS if the API uses it. The certificate is read
// again for each connection.
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
