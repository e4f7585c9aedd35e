package access

import (
	"crypto/tls"

	"github.com/spf13/pflag"
)

// Caller is a program's identity to the API, and the authorities it trusts.
type Caller struct {
	// Token is sent with each request; empty for none.
	Token string
	// CA is the file of the certificate authorities that sign the API's certificate;
	// empty for the system's.
	CA string
}

// Flags adds the flags.
func (c *Caller) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.Token, "token", "", "token for the server; prefer FANTASIA_TOKEN, which other users of this machine cannot see")
	f.StringVar(&c.CA, "ca", "", "PEM `file` of the CA certificates for the server (default: the system's)")
}

// TLS returns the configuration for a server whose address starts with https://.
func (c *Caller) TLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA == "" {
		return config, nil
	}
	roots, err := (&Files{CA: c.CA}).Roots()
	if err != nil {
		return nil, err
	}
	config.RootCAs = roots
	return config, nil
}
