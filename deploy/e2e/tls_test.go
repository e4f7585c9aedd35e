//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// certify writes a Secret of the chart with a new certificate for some names, or replaces
// what it holds.
func (c *cluster) certify(ca *testenv.CA, part string, names ...string) {
	c.t.Helper()
	dir := c.t.TempDir()
	ca.IssueFor(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), append(names, "localhost")...)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: release + "-" + part + "-tls"}, Data: map[string][]byte{}}
	for key, file := range map[string]string{"ca.crt": ca.File, corev1.TLSCertKey: filepath.Join(dir, "tls.crt"),
		corev1.TLSPrivateKeyKey: filepath.Join(dir, "tls.key")} {
		text, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		secret.Data[key] = text
	}
	secrets := c.kube.CoreV1().Secrets(c.namespace)
	_, err := secrets.Update(c.t.Context(), secret, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(c.t.Context(), secret, metav1.CreateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// handshake connects to the port of a pod by TLS, without a certificate.
func (c *cluster) handshake(ctx context.Context, pod, port string) (*tls.Conn, error) {
	raw, err := c.dialPort(pod, port)
	if err != nil {
		return nil, err
	}
	if port == "4222" { // NATS asks for TLS before it starts
		info := make([]byte, 8192)
		n, err := raw.Read(info)
		if err != nil || !bytes.Contains(info[:n], []byte(`"tls_required":true`)) {
			return nil, errors.Join(fmt.Errorf("NATS requires no TLS: %w\n%s", err, info[:n]), raw.Close())
		}
	}
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true}) // the test looks at the certificate itself
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s:%s speaks no TLS: %w", pod, port, err), raw.Close())
	}
	return conn, nil
}

// certificate returns the certificate that the server at a pod's port shows.
func (c *cluster) certificate(ctx context.Context, pod, port string) (*x509.Certificate, error) {
	conn, err := c.handshake(ctx, pod, port)
	if err != nil {
		return nil, err
	}
	shown := conn.ConnectionState().PeerCertificates[0]
	return shown, conn.Close()
}

// installSecure installs a release with these values of TLS. NATS and etcd are clusters, so
// that their servers speak TLS to each other.
func (c *cluster) installSecure(values string) {
	c.t.Helper()
	c.chart("install", fmt.Sprintf(`
image: {tag: %[1]q}
tls: %[3]s
nats: {streamReplicas: 3, bundled: {replicas: 3, persistence: {enabled: false}}}
etcd: {bundled: {replicas: 3, persistence: {enabled: false}}}
coordinator: {replicas: 2, resources: {requests: {cpu: 50m, memory: 64Mi}}}
pools: {default: {image: "%[2]sdigits:%[1]s", allowStudyCommands: true, resources: {requests: {cpu: 50m, memory: 64Mi}}}}
`, c.tag, repository, values))
	for component, count := range map[string]int{"etcd": 3, "nats": 3, "coordinator": 2, "worker": 1} {
		c.settled(4*time.Minute, component, count, c.tag)
	}
}

// runSecure runs a study of such a release.
func (c *cluster) runSecure() {
	c.t.Helper()
	c.create(strings.Replace(studyFile("secure", "default", 4, 2, 0), "[witness, linger, 0s, digits,", "[digits,", 1))
	c.completed(4*time.Minute, "secure")
}

// TestTLS installs a release whose API, NATS and etcd speak TLS, with certificates that
// the test has made.
func TestTLS(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	ca := testenv.NewCA(t)
	c.trust = ca.File
	inside := c.namespace + ".svc.cluster.local"
	names := map[string][]string{"api": {release, release + "." + inside}}
	for _, part := range []string{"nats", "etcd"} {
		names[part] = []string{release + "-" + part + "-client." + inside}
		for i := range 3 {
			names[part] = append(names[part], fmt.Sprintf("%[1]s-%[2]s-%[3]d.%[1]s-%[2]s.%[4]s", release, part, i, inside))
		}
	}
	for part, of := range names {
		c.certify(ca, part, of...)
	}
	c.installSecure("{enabled: true}")
	c.runSecure()
	c.helm("test", release, "--timeout", "5m")
	c.applyStudy("short", 4)
	c.completed(4*time.Minute, c.namespace+".short")
	c.plugin(c, "short", 1)
	c.refusesStrangers()
	t.Run("no plain text", func(t *testing.T) { c.in(t).refusesPlainText() })
	t.Run("renewed certificates", func(t *testing.T) {
		c := c.in(t)
		c.renews(func(part string) { c.certify(ca, part, names[part]...) })
	})
}

// applyStudy applies a Study resource that runs the digits.
func (c *cluster) applyStudy(name string, trials int) {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, studyResource, name, trials), &u.Object); err != nil {
		c.t.Fatal(err)
	}
	if _, err := client.Resource(kube.Studies()).Namespace(c.namespace).Apply(c.t.Context(), name, u,
		metav1.ApplyOptions{FieldManager: "kubectl"}); err != nil {
		c.t.Fatal(err)
	}
}

// refusesPlainText checks that the ports for clients, and those between servers, speak TLS,
// and that etcd answers nobody without a certificate.
func (c *cluster) refusesPlainText() {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for _, of := range [][2]string{
		{c.first("coordinator"), "8080"}, {release + "-nats-0", "4222"}, {release + "-nats-0", "6222"}, {release + "-etcd-0", "2379"},
		{release + "-etcd-0", "2380"},
	} {
		if _, err := c.certificate(ctx, of[0], of[1]); err != nil {
			c.t.Error(err)
		}
	}
	conn, err := c.handshake(ctx, release+"-etcd-0", "2379")
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		c.t.Log(err)
	}
	answer := make([]byte, 1024)
	if n, err := conn.Read(answer); err == nil || !strings.Contains(err.Error(), "certificate") {
		c.t.Errorf("etcd answers a client without a certificate: %v\n%s", err, answer[:n])
	}
	_ = conn.Close() // etcd has closed it
}

// first returns the name of a pod of a component.
func (c *cluster) first(component string) string {
	c.t.Helper()
	pods, err := c.pods(c.t.Context(), component)
	if err != nil || len(pods) == 0 {
		c.t.Fatalf("%s has %d pods: %v", component, len(pods), err)
	}
	return pods[0].Name
}

// renews has the certificates of the API and of NATS replaced, as cert-manager does before
// they expire. Both servers show the new ones without a restart.
func (c *cluster) renews(replace func(part string)) {
	c.t.Helper()
	ports := map[string][2]string{"api": {c.first("coordinator"), "8080"}, "nats": {release + "-nats-0", "4222"}}
	before := map[string]*x509.Certificate{}
	for part, of := range ports {
		shown, err := c.certificate(c.t.Context(), of[0], of[1])
		if err != nil {
			c.t.Fatal(err)
		}
		before[part] = shown
		replace(part)
	}
	for part, of := range ports {
		c.await(4*time.Minute, func(ctx context.Context) error {
			now, err := c.certificate(ctx, of[0], of[1])
			if err == nil && now.SerialNumber.Cmp(before[part].SerialNumber) == 0 {
				err = fmt.Errorf("%s shows the old certificate", part)
			}
			return err
		})
	}
	if _, err := c.api().ListStudies(c.t.Context(), connect.NewRequest(&fantasiav1.ListStudiesRequest{})); err != nil {
		c.t.Errorf("after the certificates were renewed: %v", err)
	}
}

// secure returns the TLS of a client of the API; nil if the release speaks none.
func (c *cluster) secure() *tls.Config {
	c.t.Helper()
	if c.trust == "" {
		return nil
	}
	text, err := os.ReadFile(c.trust)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		c.t.Fatalf("%s: no certificate (%v)", c.trust, err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}

// address returns the API's address for clients that dial it by a forwarded port.
func (c *cluster) address() string {
	if c.trust == "" {
		return "http://" + release + ":8080"
	}
	return "https://" + release + ":8080"
}

// transport returns the connections of a client of the API.
func (c *cluster) transport() *http.Transport {
	return &http.Transport{DialContext: c.dial, DisableKeepAlives: true, TLSClientConfig: c.secure()}
}
