package helm

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/server"
)

// Coordinators get the issuer's flags, its grants as a file that they can read, the
// authority of its certificate, and a way to it.
func TestOIDC(t *testing.T) {
	if text := render(t, values(`coordinator.oidc.grants=["sub=a read"]`)...); strings.Contains(text, "oidc") {
		t.Error("something is there without coordinator.oidc.issuer")
	}
	lines := []string{"groups=ml write ml-,shared-", `groups="data \"science\" <x>" read`, "sub=system:serviceaccount:a:b write",
		"https://example.com/role=admin read"}
	text, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t,
		render(t, values("coordinator.requireToken=true", `coordinator.oidc.issuer="https://kubernetes.default.svc.cluster.local"`,
			"coordinator.oidc.grants="+string(text),
			`coordinator.oidc.keys="https://kubernetes.default.svc/openid/v1/jwks"`, `coordinator.oidc.caConfigMap="kube-root-ca.crt"`,
			`networkPolicy.oidcPorts=[7443]`)...))
	pod := pods(all)["Deployment/f-fantasia-coordinator"]
	coordinator := container(t, pod, "coordinator")
	for name, want := range map[string]string{
		"oidc-issuer": "https://kubernetes.default.svc.cluster.local", "oidc-audience": "fantasia",
		"oidc-keys": "https://kubernetes.default.svc/openid/v1/jwks", "oidc-grants": "/etc/fantasia/oidc/grants",
		"oidc-ca": "/etc/fantasia/oidc-ca/ca.crt",
	} {
		if got := flag(t, coordinator, name); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	mounts := map[string]string{}
	for _, m := range coordinator.list("volumeMounts") {
		mounts[m.text("mountPath")] = m.text("name")
	}
	volumes := map[string]string{}
	for _, v := range pod.list("spec", "volumes") {
		volumes[v.text("name")] = v.text("configMap", "name")
	}
	if got := volumes[mounts["/etc/fantasia/oidc-ca"]]; got != "kube-root-ca.crt" {
		t.Errorf("the authority is from the ConfigMap %q", got)
	}
	grants := find(t, all, "ConfigMap", volumes[mounts["/etc/fantasia/oidc"]]).text("data", "grants")
	file := filepath.Join(t.TempDir(), "grants")
	if err := os.WriteFile(file, []byte(grants), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := server.ReadClaimGrants(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for claims, want := range map[string]string{
		`{"groups": ["ml"]}`:                    "true [ml- shared-]",
		`{"groups": "data \"science\" <x>"}`:    "false []",
		`{"sub": "system:serviceaccount:a:b"}`:  "true []",
		`{"https://example.com/role": "admin"}`: "false []",
	} {
		var of map[string]json.RawMessage
		if err := json.Unmarshal([]byte(claims), &of); err != nil {
			t.Fatal(err)
		}
		if g, _, ok := read.Grant(of); !ok || fmt.Sprint(g.Write, " ", g.Prefixes) != want {
			t.Errorf("%s: %+v, %t; want %s", claims, g, ok, want)
		}
	}
	if !slices.ContainsFunc(find(t, all, "NetworkPolicy", "f-fantasia-coordinator").list("spec", "egress"), func(rule resource) bool {
		return slices.ContainsFunc(rule.list("ports"), func(p resource) bool { return fmt.Sprint(p.at("port")) == "7443" })
	}) {
		t.Error("no policy lets coordinators reach the issuer")
	}
}

// The chart accepts the lines of grants that the coordinator reads, and no others.
func TestSchemaKnowsGrants(t *testing.T) {
	all := chartValues(t)
	var pattern *regexp.Regexp
	for _, v := range all.Leaves() {
		if v.Name() == "coordinator.oidc.grants" {
			items, _ := v.Schema["items"].(map[string]any)
			pattern = regexp.MustCompile(fmt.Sprint(items["pattern"]))
		}
	}
	for _, line := range []string{
		"a=b read", "a=b write c", "a=b write c,d", "a=b\twrite   c", `a="b c" read`, `a="b\"c" read`, `a="b\\" read`, "a=b=c read",
		"https://a/b=c read",
		"a=b write c studies=5", "a=b write c,d studies=5 study-bytes=50MiB open-trials=none", "a=b read studies=0",
		"a=b write studies", "a=b write c studies=", "a=b write c studies=5MiB", "a=b write c workers=5", "a=b write c study-bytes=5MB",
		"a=b write studies=5 c", "a=b write c,d=5",
		"a", "a=b", "a=b admin", "a= read", "=b read", "a=b read c,,d", "a=b read ,c", "a=b read c d", `a="b read`, `a="" read`, `a="b"read`,
		"a b=c read", `a="b\" read`, `a="\q" read`,
	} {
		name := filepath.Join(t.TempDir(), "grants")
		if err := os.WriteFile(name, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := server.ReadClaimGrants(name, slog.New(slog.DiscardHandler))
		if got := pattern.MatchString(line); got != (err == nil) {
			t.Errorf("the schema accepts %q: %t, the coordinator: %v", line, got, err)
		}
	}
	for _, line := range []string{"", "# a comment", "#a=b read", "a=b read\nc=d write"} {
		if pattern.MatchString(line) {
			t.Errorf("the schema accepts %q, which grants nothing, or more than it shows", line)
		}
	}
}
