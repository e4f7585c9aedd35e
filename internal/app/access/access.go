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

// Files are the files of TLS, in PEM.
type Files struct {
	// CA has the certificates of who signs the server's; empty for the system's.
	CA string
	// Cert and Key are the program's own, for a server that asks for them.
	Cert, Key string
	// flag is the start of the flags' names: nats for --nats-ca.
	flag string
}

func (t *Files) flags(f *pflag.FlagSet, flag, server string) {
	t.flag = flag
	f.StringVar(&t.CA, flag+"-ca", "", "file of the certificates that "+server+"'s must be signed by, in PEM; turns TLS on (default: the system's, where the address asks for TLS)")
	f.StringVar(&t.Cert, flag+"-cert", "", "file of this program's own certificate for "+server+", in PEM")
	f.StringVar(&t.Key, flag+"-key", "", "file of the certificate's key, in PEM")
}

// given reports whether any flag asks for TLS.
func (t *Files) given() bool { return t.CA != "" || t.Cert != "" || t.Key != "" }

// check reads every file once.
func (t *Files) check() error {
	if (t.Cert == "") != (t.Key == "") {
		return fmt.Errorf("--%s-cert and --%s-key: give both or neither", t.flag, t.flag)
	}
	_, err := t.config()
	return err
}

// ca is the flag of CA.
func (t *Files) ca() string {
	if t.flag == "" {
		return "--ca"
	}
	return "--" + t.flag + "-ca"
}

// roots reads the certificates to trust; nil means the system's.
func (t *Files) roots() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.ca(), err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM", t.ca(), t.CA)
	}
	return pool, nil
}

// own reads the program's own certificate.
func (t *Files) own() (tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return c, fmt.Errorf("--%s-cert %s and --%s-key %s: %w", t.flag, t.Cert, t.flag, t.Key, err)
	}
	return c, nil
}

// config is what the files say now.
func (t *Files) config() (*tls.Config, error) {
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if t.Cert != "" {
		own, err := t.own()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// Password is a user and the file of its password.
type Password struct {
	User, File string
	flag       string
}

func (p *Password) flags(f *pflag.FlagSet, flag, server string) {
	p.flag = flag
	f.StringVar(&p.User, flag+"-user", "", "user of "+server)
	f.StringVar(&p.File, flag+"-password-file", "", "file of the user's password")
}

// check reads the file once.
func (p *Password) check() error {
	if (p.User == "") != (p.File == "") {
		return fmt.Errorf("--%s-user and --%s-password-file: give both or neither", p.flag, p.flag)
	}
	if p.User == "" {
		return nil
	}
	_, err := p.read()
	return err
}

// read is the password in the file now, without the line's end.
func (p *Password) read() (string, error) {
	data, err := os.ReadFile(p.File)
	if err != nil {
		return "", fmt.Errorf("--%s-password-file: %w", p.flag, err)
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" {
		return "", fmt.Errorf("--%s-password-file: %w", p.flag, errEmpty(p.File))
	}
	return password, nil
}

func errEmpty(file string) error { return errors.New(file + " is empty") }
