package helm

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/api/server"
)

// grant returns what a file of tokens, as a Secret has it, grants to the bearer of a token.
func grant(t *testing.T, tokens, token string) server.Grant {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := server.ReadTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g, err := read.Grant(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tokensVolume returns the volume that a coordinator reads its file of tokens from; nil if
// it has no such file.
func tokensVolume(t *testing.T, all []resource) resource {
	t.Helper()
	pod := pods(all)["Deployment/f-fantasia-coordinator"]
	coordinator := container(t, pod, "coordinator")
	at := slices.IndexFunc(args(coordinator), func(a string) bool { return strings.HasPrefix(a, "--tokens=") })
	if at < 0 {
		return nil
	}
	file := strings.TrimPrefix(args(coordinator)[at], "--tokens=")
	for _, m := range coordinator.list("volumeMounts") {
		if m.text("mountPath") != filepath.Dir(file) {
			continue
		}
		for _, v := range pod.list("spec", "volumes") {
			if v.text("name") == m.text("name") {
				return v
			}
		}
	}
	t.Fatalf("nothing is mounted for --tokens=%s", file)
	return nil
}

// testToken returns the Secret and the key of the token that each command of helm test
// sends; empty for none.
func testToken(t *testing.T, all []resource) string {
	t.Helper()
	var from []string
	pod := pods(all)["Pod/f-fantasia-test"]
	for _, c := range append(pod.list("spec", "initContainers"), pod.list("spec", "containers")...) {
		if !slices.ContainsFunc(args(c), func(a string) bool { return strings.HasPrefix(a, "--server=") }) {
			continue
		}
		secret := ""
		for _, e := range c.list("env") {
			if e.text("name") == "FANTASIA_TOKEN" {
				secret = e.text("valueFrom", "secretKeyRef", "name") + " " + e.text("valueFrom", "secretKeyRef", "key")
			}
		}
		from = append(from, secret)
	}
	if len(from) != 3 || len(slices.Compact(slices.Clone(from))) != 1 {
		t.Fatalf("the commands of helm test have tokens from %q", from)
	}
	return from[0]
}

// By default the chart draws a token for people and one for helm test, and coordinators
// accept both. They see the hashes only.
func TestTokensAreDrawn(t *testing.T) {
	all := objects(t, render(t, values("coordinator.requireToken=true")...))
	// other arguments, so it is rendered anew
	again := objects(t, render(t, append(values("coordinator.requireToken=true"), "--debug=false")...))
	volume := tokensVolume(t, all)
	if diff := cmp.Diff([]any{map[string]any{"key": "tokens", "path": "tokens"}}, volume.at("secret", "items")); volume.text("secret",
		"secretName") != "f-fantasia-token-hashes" || diff != "" {
		t.Errorf("coordinators mount %v of the tokens (-want +got):\n%s", volume, diff)
	}
	hashes := find(t, all, "Secret", "token-hashes").text("stringData", "tokens")
	admin, own := find(t, all, "Secret", "token").text("stringData", "token"),
		find(t, all, "Secret", "token-helm-test").text("stringData", "token")
	if g := grant(t, hashes, admin); !g.Write || len(g.Prefixes) > 0 || g.Name != "admin" {
		t.Errorf("the token grants %+v, want everything", g)
	}
	if g := grant(t, hashes, own); !g.Write || !slices.Equal(g.Prefixes, []string{"helm-test"}) || g.Name != "helm-test" {
		t.Errorf("the token of helm test grants %+v, want its own study", g)
	}
	if study := find(t, all, "ConfigMap", "test").text("data", "study.yaml"); !strings.Contains(study, "metadata: {name: helm-test}") {
		t.Errorf("helm test runs another study than its token allows:\n%s", study)
	}
	if got := testToken(t, all); got != "f-fantasia-token-helm-test token" {
		t.Errorf("helm test has the token of %q", got)
	}
	if n := strings.Count(hashes, "\n"); n != 2 {
		t.Errorf("there are %d tokens, want 2:\n%s", n, hashes)
	}
	if len(admin) < 40 || admin == own || admin == find(t, again, "Secret", "token").text("stringData", "token") {
		t.Errorf("the tokens %q and %q are not drawn", admin, own)
	}
	for name, pod := range pods(all) {
		for _, v := range pod.list("spec", "volumes") {
			if s := v.text("secret", "secretName"); strings.Contains(s, "token") &&
				(s != "f-fantasia-token-hashes" || name != "Deployment/f-fantasia-coordinator") {
				t.Errorf("%s mounts the Secret %s", name, s)
			}
		}
	}
}

// Tokens of the operator's own, or those of an issuer, take the place of the chart's. Only
// an explicit value opens the API.
func TestTokensOfOthers(t *testing.T) {
	for _, c := range []struct {
		set               []string
		mounted, helmTest string
	}{
		{[]string{`coordinator.requireToken=true`, `coordinator.tokensSecret="mine"`}, "mine", ""},
		{[]string{`coordinator.requireToken=true`, `coordinator.tokensSecret="mine"`, `test.tokenSecret="its"`}, "mine", "its token"},
		{[]string{`coordinator.requireToken=true`, `coordinator.oidc.issuer="https://a"`}, "", ""},
		{[]string{`coordinator.requireToken=true`, `coordinator.oidc.issuer="https://a"`, `coordinator.tokensSecret="mine"`}, "mine", ""},
		{[]string{`coordinator.requireToken=true`, `test.tokenSecret="its"`}, "f-fantasia-token-hashes", "its token"},
		{[]string{`coordinator.requireToken=false`}, "", ""},
	} {
		all := objects(t, render(t, values(c.set...)...))
		if got := tokensVolume(t, all).text("secret", "secretName"); got != c.mounted {
			t.Errorf("with %q, coordinators read the Secret %q, want %q", c.set, got, c.mounted)
		}
		if got := testToken(t, all); got != c.helmTest {
			t.Errorf("with %q, helm test has the token of %q, want %q", c.set, got, c.helmTest)
		}
		drawn := slices.ContainsFunc(all, func(o resource) bool { return o.kind() == "Secret" && strings.Contains(o.name(), "token") })
		if want := c.mounted == "f-fantasia-token-hashes"; drawn != want {
			t.Errorf("with %q, tokens are drawn: %t, want %t", c.set, drawn, want)
		}
	}
	for _, set := range []string{`coordinator.tokensSecret="mine"`, `coordinator.oidc.issuer="https://a"`} {
		_, err := run(t, "helm", append([]string{"template", "f", chart}, values(`coordinator.requireToken=false`, set)...)...)
		if err == nil || !strings.Contains(err.Error(), "coordinator.requireToken is false, but "+strings.Split(set, "=")[0]+" is set") {
			t.Errorf("an open API with %s: %v", set, err)
		}
	}
}
