//go:build e2e && certmanager

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// issuers are an authority of the namespace and the issuer of its certificates, as in
// https://cert-manager.io/docs/configuration/selfsigned/#bootstrapping-ca-issuers.
const issuers = `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: selfsigned}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: authority}
spec:
  isCA: true
  commonName: authority
  secretName: authority
  privateKey: {algorithm: ECDSA, size: 256}
  issuerRef: {name: selfsigned}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: authority}
spec: {ca: {secretName: authority}}
`

// applyAll creates the objects of a text with several documents.
func (m *manifests) applyAll(text string) {
	m.t.Helper()
	all, err := documents([]byte(text))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, u := range all {
		m.add(u)
	}
}

// startCertManager installs the kinds of cert-manager from FANTASIA_E2E_CERT_MANAGER, and runs
// its controller beside the cluster, with the rights of KUBECONFIG. Both go with the test.
func startCertManager(t *testing.T) {
	t.Helper()
	dir := os.Getenv("FANTASIA_E2E_CERT_MANAGER")
	text, err := os.ReadFile(filepath.Join(dir, "crds.yaml"))
	if err != nil {
		t.Fatalf("FANTASIA_E2E_CERT_MANAGER: %v", err)
	}
	m := reach(t).manifests()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.deleteAll(ctx); err != nil {
			t.Error(err)
		}
	})
	m.applyAll(string(text))
	for _, u := range m.applied {
		m.becomes("Established", time.Minute, u)
	}
	controller := exec.CommandContext(t.Context(), filepath.Join(dir, "controller"),
		"--kubeconfig", os.Getenv("KUBECONFIG"), "--leader-elect=false", "--metrics-listen-address=127.0.0.1:0")
	log, err := os.Create(filepath.Join(t.TempDir(), "controller.log"))
	if err != nil {
		t.Fatal(err)
	}
	controller.Stdout, controller.Stderr = log, log
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = controller.Wait() // the test's context has killed it
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("cert-manager:\n%s", text)
		}
	})
}

// TestCertManager installs a release with one value for TLS, whose certificates a real
// cert-manager makes, and makes again.
func TestCertManager(t *testing.T) {
	inTurn(t)
	startCertManager(t)
	c := newCluster(t)
	c.manifests().applyAll(issuers)
	c.installSecure("{enabled: true, issuer: {name: authority}}")
	secrets := c.kube.CoreV1().Secrets(c.namespace)
	made, err := secrets.Get(t.Context(), release+"-api-tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.trust = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(c.trust, made.Data["ca.crt"], 0o600); err != nil {
		t.Fatal(err)
	}
	c.runSecure()
	c.refusesPlainText()
	c.renews(func(part string) {
		if err := secrets.Delete(t.Context(), release+"-"+part+"-tls", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	c.helm("test", release, "--timeout", "5m")
}
