package helm

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

const k8s = "../k8s"

// TestManifestsAreTheChart checks that deploy/k8s matches the chart.
func TestManifestsAreTheChart(t *testing.T) {
	testenv.Tool(t, "kube", helmProgram)
	files, err := Manifests(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join(k8s, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(have)); diff != "" {
			t.Errorf("deploy/k8s/%s is not what the chart renders: run make manifests\n%s", name, diff)
		}
	}
}

// TestKustomization builds deploy/k8s as kubectl apply -k does, with new passwords.
func TestKustomization(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(k8s)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "secrets.yaml")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "bash", filepath.Join(dir, "passwords")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	built, err := run(t, "kustomize", "build", dir)
	if err != nil {
		t.Fatal(err)
	}
	if left := regexp.MustCompile(`@[a-z0-9-]+@`).FindString(built); left != "" {
		t.Errorf("the password %s has not been set", left)
	}
	names := func(all []resource) []string {
		var out []string
		for _, o := range all {
			out = append(out, o.kind()+"/"+o.name())
		}
		slices.Sort(out)
		return out
	}
	rendered, err := run(t, "helm", "template", "fantasia", chart, "--namespace=fantasia", "--include-crds", "--no-hooks", "--skip-tests",
		"--values="+filepath.Join(k8s, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, built)
	want := append(names(objects(t, rendered)), "Namespace/fantasia")
	slices.Sort(want)
	if diff := cmp.Diff(want, names(all)); diff != "" {
		t.Errorf("kustomize builds (+) other resources than helm renders (-):\n%s", diff)
	}
	passwords := map[string]string{}
	accounts := ""
	for _, o := range all {
		if o.kind() == "Secret" && o.text("stringData", "password") != "" {
			passwords[o.text("stringData", "user")] = o.text("stringData", "password")
		}
		accounts += o.text("stringData", "accounts.conf")
	}
	for user, password := range passwords {
		if len(password) < 40 || !strings.Contains(accounts, `user: "`+user+`", password: "`+password+`"`) {
			t.Errorf("the accounts do not have the password of %s", user)
		}
	}
	hashes := find(t, all, "Secret", "fantasia-token-hashes").text("stringData", "tokens")
	token := find(t, all, "Secret", "fantasia-token").text("stringData", "token")
	if g := grant(t, hashes, token); len(token) < 40 || !g.Write || g.Name != "admin" {
		t.Errorf("the token %q grants %+v", token, g)
	}
	if g := grant(t, hashes, find(t, all, "Secret", "fantasia-token-helm-test").text("stringData", "token")); !slices.Equal(g.Prefixes,
		[]string{"helm-test"}) {
		t.Errorf("the token of helm test grants %+v", g)
	}
	if len(passwords) != 3 || passwords["coordinator"] == passwords["pool-default"] {
		t.Errorf("want a password for each of 3 users, have those of %d", len(passwords))
	}
}
