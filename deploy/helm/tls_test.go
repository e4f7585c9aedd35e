package helm

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// secretOf returns the Secret that a container mounts in the folder of a file, and the keys
// of it; no keys are all.
func secretOf(t *testing.T, pod, c resource, file string) (secret, keys string) {
	t.Helper()
	for _, m := range c.list("volumeMounts") {
		if m.text("mountPath") != filepath.Dir(file) {
			continue
		}
		for _, v := range pod.list("spec", "volumes") {
			if v.text("name") == m.text("name") {
				for _, item := range v.list("secret", "items") {
					keys += item.text("key")
				}
				return v.text("secret", "secretName"), keys
			}
		}
	}
	t.Fatalf("%s mounts nothing for %s", c.text("name"), file)
	return "", ""
}

// withTLS are values of a release whose servers are clusters that speak TLS, with
// certificates of an issuer.
func withTLS(set ...string) []string {
	return values(append([]string{"tls.enabled=true", `tls.issuer={"name":"internal","kind":"ClusterIssuer"}`, "nats.bundled.replicas=3",
		"etcd.bundled.replicas=3",
		`coordinator.allowedHosts=["tuner.example", ".wild.example", "*"]`}, set...)...)
}

// One value has the API, NATS and etcd speak TLS to everybody.
func TestTLS(t *testing.T) {
	text := render(t, withTLS()...)
	if plain := regexp.MustCompile(`http://[^ ]*:(8080|2379|2380)|nats://[^ ]*:4222`).FindString(text); plain != "" {
		t.Errorf("something speaks no TLS: %s", plain)
	}
	all := objects(t, text)
	everything := pods(all)
	pod := everything["Deployment/f-fantasia-coordinator"]
	coordinator := container(t, pod, "coordinator")
	for name, want := range map[string]string{
		"tls-cert": "f-fantasia-api-tls", "tls-key": "f-fantasia-api-tls", "tls-ca": "f-fantasia-api-tls",
		"etcd-cert": "f-fantasia-api-tls", "etcd-key": "f-fantasia-api-tls", "etcd-ca": "f-fantasia-etcd-tls ca.crt",
		"nats-ca": "f-fantasia-nats-tls ca.crt",
	} {
		secret, keys := secretOf(t, pod, coordinator, flag(t, coordinator, name))
		if got := strings.TrimSpace(secret + " " + keys); got != want {
			t.Errorf("--%s of coordinators is from the Secret %s, want %s", name, got, want)
		}
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		if got := coordinator.text(probe, "httpGet", "scheme"); got != "HTTPS" {
			t.Errorf("the %s uses %q", probe, got)
		}
	}
	worker := everything["Deployment/f-fantasia-worker-default"]
	if secret, keys := secretOf(t, worker, container(t, worker, "worker"),
		flag(t, container(t, worker, "worker"), "nats-ca")); secret != "f-fantasia-nats-tls" || keys != "ca.crt" {
		t.Errorf("workers mount %s of %s", keys, secret)
	}
	test := everything["Pod/f-fantasia-test"]
	if secret, keys := secretOf(t, test, container(t, test, "watch"),
		flag(t, container(t, test, "watch"), "ca")); secret != "f-fantasia-api-tls" || keys != "ca.crt" {
		t.Errorf("helm test mounts %s of %s", keys, secret)
	}
	etcd := everything["StatefulSet/f-fantasia-etcd"]
	for _, name := range []string{"cert-file", "key-file", "trusted-ca-file", "peer-cert-file", "peer-key-file", "peer-trusted-ca-file"} {
		if secret, _ := secretOf(t, etcd, container(t, etcd, "etcd"),
			flag(t, container(t, etcd, "etcd"), name)); secret != "f-fantasia-etcd-tls" {
			t.Errorf("--%s of etcd is from the Secret %s", name, secret)
		}
	}
	for _, want := range []string{"--client-cert-auth", "--peer-client-cert-auth"} {
		if !slices.Contains(args(container(t, etcd, "etcd")), want) {
			t.Errorf("etcd lacks %s", want)
		}
	}
	nats := everything["StatefulSet/f-fantasia-nats"]
	if secret, _ := secretOf(t, nats, container(t, nats, "nats"), "/etc/nats-tls/tls.crt"); secret != "f-fantasia-nats-tls" {
		t.Errorf("NATS' certificate is from the Secret %s", secret)
	}
	reload := container(t, nats, "reload")
	if !slices.Contains(args(reload), "--file=/etc/nats-tls/tls.crt") {
		t.Errorf("NATS does not notice a new certificate: %q", args(reload))
	}
	secretOf(t, nats, reload, "/etc/nats-tls/tls.crt")
}

// The certificates have the names by which the servers are called, and localhost, for a
// forwarded port.
func TestCertificates(t *testing.T) {
	text := render(t, withTLS("metrics.serviceMonitor.enabled=true")...)
	all := objects(t, text)
	has := map[string][]string{}
	for _, o := range all {
		if o.kind() != "Certificate" {
			continue
		}
		want := map[string]any{"name": "internal", "kind": "ClusterIssuer", "group": "cert-manager.io"}
		if diff := cmp.Diff(want, o.at("spec", "issuerRef")); diff != "" || o.text("spec", "secretName") != o.name() {
			t.Errorf("%s makes the Secret %s (issuer -want +got):\n%s", o.name(), o.text("spec", "secretName"), diff)
		}
		names, _ := o.at("spec", "dnsNames").([]any)
		for _, n := range names {
			has[o.name()] = append(has[o.name()], fmt.Sprint(n))
		}
	}
	everything := pods(all)
	coordinator := container(t, everything["Deployment/f-fantasia-coordinator"], "coordinator")
	endpoint := find(t, all, "ServiceMonitor", "f-fantasia").list("spec", "endpoints")[0]
	called := map[string][]string{
		"f-fantasia-api-tls": {"localhost", "tuner.example", "*.wild.example", "f-fantasia.tuning.svc", flag(t, coordinator, "tls-server-name"),
			endpoint.text("tlsConfig", "serverName"), host(t, flag(t, container(t, everything["Pod/f-fantasia-test"], "watch"), "server"))},
		"f-fantasia-nats-tls": {"localhost", "f-fantasia-nats", host(t, flag(t, coordinator, "nats"))},
		"f-fantasia-etcd-tls": {"localhost"},
	}
	for _, address := range strings.Split(flag(t, coordinator, "etcd"), ",") {
		called["f-fantasia-etcd-tls"] = append(called["f-fantasia-etcd-tls"], host(t, address))
	}
	for _, member := range strings.Split(flag(t, container(t, everything["StatefulSet/f-fantasia-etcd"], "etcd"), "initial-cluster"), ",") {
		_, address, _ := strings.Cut(member, "=")
		called["f-fantasia-etcd-tls"] = append(called["f-fantasia-etcd-tls"], host(t, address))
	}
	routes := regexp.MustCompile(`nats://\S+:6222`).FindAllString(find(t, all, "ConfigMap", "nats").text("data", "nats.conf"), -1)
	for _, route := range routes {
		called["f-fantasia-nats-tls"] = append(called["f-fantasia-nats-tls"], host(t, route))
	}
	if len(has) != 3 || len(routes) != 3 || endpoint.text("scheme") != "https" ||
		endpoint.text("tlsConfig", "ca", "secret", "name") != "f-fantasia-api-tls" {
		t.Errorf("there are %d certificates and %d routes; metrics are read by %v", len(has), len(routes), endpoint)
	}
	for secret, names := range called {
		for _, name := range names {
			if !slices.Contains(has[secret], name) {
				t.Errorf("%s lacks the name %q, has %q", secret, name, has[secret])
			}
		}
	}
	if slices.Contains(has["f-fantasia-api-tls"], "*") {
		t.Error("the API's certificate is for every name")
	}
}

func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Hostname()
}

// Without an issuer the Secrets are the operator's, and what is not bundled keeps its own.
func TestOwnCertificates(t *testing.T) {
	all := objects(t, render(t, values("tls.enabled=true")...))
	if slices.ContainsFunc(all, func(o resource) bool { return o.kind() == "Certificate" }) {
		t.Error("certificates are asked for without an issuer")
	}
	pod := pods(all)["Deployment/f-fantasia-coordinator"]
	if secret, _ := secretOf(t, pod, container(t, pod, "coordinator"),
		flag(t, container(t, pod, "coordinator"), "tls-cert")); secret != "f-fantasia-api-tls" {
		t.Errorf("the API's certificate is from the Secret %s", secret)
	}
	all = objects(t,
		render(t, withTLS(`nats.urls=["tls://a:4222"]`, `etcd.urls=["https://b:2379"]`, `nats.tls.caSecret="its-ca"`,
			`etcd.tls={"caSecret":"their-ca","certSecret":"mine"}`)...))
	pod = pods(all)["Deployment/f-fantasia-coordinator"]
	coordinator := container(t, pod, "coordinator")
	for name, want := range map[string]string{"nats-ca": "its-ca", "etcd-ca": "their-ca", "etcd-cert": "mine"} {
		if secret, _ := secretOf(t, pod, coordinator, flag(t, coordinator, name)); secret != want {
			t.Errorf("--%s is from the Secret %s, want %s", name, secret, want)
		}
	}
	made := 0
	for _, o := range all {
		if o.kind() == "Certificate" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d certificates are asked for, want the API's alone", made)
	}
}
