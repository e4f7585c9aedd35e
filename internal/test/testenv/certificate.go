package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is a certificate authority for a test.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// File is the path of its certificate, in PEM.
	File string
}

// NewCA creates an authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, key: newKey(t), File: filepath.Join(t.TempDir(), "ca.pem")}
	template := certificate("a test's authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	ca.cert = template
	der := ca.sign(template, ca.key)
	var err error
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, ca.File, "CERTIFICATE", der)
	return ca
}

// Issue writes a certificate for a name and its key to the files, in PEM, replacing
// them. The certificate is valid for a server on this machine and for a client.
func (ca *CA) Issue(name, certFile, keyFile string) {
	ca.t.Helper()
	template := certificate(name)
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	ca.issue(template, certFile, keyFile)
}

// IssueFor does the same for a server that has the given DNS names and no others.
func (ca *CA) IssueFor(certFile, keyFile string, names ...string) {
	ca.t.Helper()
	template := certificate("a server")
	template.DNSNames = names
	ca.issue(template, certFile, keyFile)
}

func (ca *CA) issue(template *x509.Certificate, certFile, keyFile string) {
	ca.t.Helper()
	key := newKey(ca.t)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	writePEM(ca.t, certFile, "CERTIFICATE", ca.sign(template, key))
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	writePEM(ca.t, keyFile, "EC PRIVATE KEY", der)
}

// New calls Issue with two new files.
func (ca *CA) New(name string) (certFile, keyFile string) {
	ca.t.Helper()
	dir := ca.t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca.Issue(name, certFile, keyFile)
	return certFile, keyFile
}

func (ca *CA) sign(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	ca.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	return der
}

func certificate(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err) // never: see crypto/rand
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
