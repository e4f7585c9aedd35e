package access

import (
	"crypto/tls"

	"github.com/spf13/pflag"
)

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
	roots, err := (&Files{CA: c.CA}).Roots()
	if err != nil {
		return nil, err
	}
	config.RootCAs = roots
	return config, nil
}
