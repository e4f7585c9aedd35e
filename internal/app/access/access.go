// Package access is how the programs show who they are to NATS and etcd, and
// know whom they speak to: the flags for it and what they mean.
//
// Credentials come from files only. Whatever can be, is read again for each
// connection, so that files which somebody replaces, as Kubernetes does with a
// Secret's, take effect without a restart. An error names the flag and the file.
package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Files are the TLS files, in PEM.
type Files struct {
	// CA is the file of the certificate authorities that sign the server's certificate;
	// empty for the system's.
	CA string
	// Cert and Key are the program's own certificate and key, for a server that asks
	// for them.
	Cert, Key string
	// Flag is the prefix of the flags, for errors: nats for --nats-ca.
	Flag string
}

// Flags adds the flags, prefixed by flag.
func (t *Files) Flags(f *pflag.FlagSet, flag, server string) {
	t.Flag = flag
	f.StringVar(&t.CA, flag+"-ca", "", "PEM file of the CA certificates for "+server+"; enables TLS (default: the system's, if the address "+
		"asks for TLS)")
	f.StringVar(&t.Cert, flag+"-cert", "", "PEM file of this program's certificate for "+server+"")
	f.StringVar(&t.Key, flag+"-key", "", "PEM file of the certificate's key")
}

// Given reports whether any flag asks for TLS.
func (t *Files) Given() bool { return t.CA != "" || t.Cert != "" || t.Key != "" }

// Check reads every file once.
func (t *Files) Check() error {
	if (t.Cert == "") != (t.Key == "") {
		return fmt.Errorf("--%s-cert and --%s-key: set both or neither", t.Flag, t.Flag)
	}
	_, err := t.Config()
	return err
}

// ca returns the flag of CA.
func (t *Files) ca() string {
	if t.Flag == "" {
		return "--ca"
	}
	return "--" + t.Flag + "-ca"
}

// Roots reads the trusted certificates; nil means the system's.
func (t *Files) Roots() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.ca(), err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s contains no PEM certificate", t.ca(), t.CA)
	}
	return pool, nil
}

// Own reads the program's own certificate.
func (t *Files) Own() (tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return c, fmt.Errorf("--%s-cert %s and --%s-key %s: %w", t.Flag, t.Cert, t.Flag, t.Key, err)
	}
	return c, nil
}

// Config returns the configuration from the present files.
func (t *Files) Config() (*tls.Config, error) {
	roots, err := t.Roots()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if t.Cert != "" {
		own, err := t.Own()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// Shown returns an address as errors and logs may show it: without the user, password or
// token before its host. What cannot be read as a URL is cut in the same way, since a password
// may be the reason.
func Shown(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	return scheme + rest[strings.LastIndex(rest, "@")+1:]
}

// Password is a user and the file of its password.
type Password struct {
	User, File string
	// Flag is the prefix of the flags, for errors: nats for --nats-user.
	Flag string
}

// Flags adds the flags, prefixed by flag.
func (p *Password) Flags(f *pflag.FlagSet, flag, server string) {
	p.Flag = flag
	f.StringVar(&p.User, flag+"-user", "", "user of "+server)
	f.StringVar(&p.File, flag+"-password-file", "", "file of the user's password")
}

// Check reads the file once.
func (p *Password) Check() error {
	if (p.User == "") != (p.File == "") {
		return fmt.Errorf("--%s-user and --%s-password-file: set both or neither", p.Flag, p.Flag)
	}
	if p.User == "" {
		return nil
	}
	_, err := p.Read()
	return err
}

// Read returns the password that the file now holds, without a trailing newline.
func (p *Password) Read() (string, error) {
	data, err := os.ReadFile(p.File)
	if err != nil {
		return "", fmt.Errorf("--%s-password-file: %w", p.Flag, err)
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" {
		return "", fmt.Errorf("--%s-password-file: %w", p.Flag, errors.New(p.File+" is empty"))
	}
	return password, nil
}
