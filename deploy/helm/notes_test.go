package helm

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notes returns what helm prints after an installation.
func notes(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, "helm", append([]string{"install", "f", chart, "--namespace=tuning", "--dry-run=client"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(out, "\nNOTES:\n")
	if !found {
		t.Fatalf("helm printed no notes:\n%s", out)
	}
	return text
}

// TestNotes checks that the notes name the next commands for what is switched on, and
// that nouns agree with their numbers.
func TestNotes(t *testing.T) {
	disagree := regexp.MustCompile(`\b(1 (coordinator|pool|pod|slot)s|(0|[2-9]|\d\d+) (coordinator|pool|pod|slot))\b`)
	for _, file := range combinations(t) {
		if text := notes(t, "--values="+file); disagree.MatchString(text) {
			t.Errorf("%s: the notes say %q", filepath.Base(file), disagree.FindString(text))
		}
	}
	for _, c := range []struct {
		set    []string
		want   string
		absent string
	}{
		{nil, "3 coordinators, 1 pool\n  pool default: 1 pod of 1 slot\n", "Jobs"},
		{nil, "kubectl -n tuning apply -f STUDY.yaml", "are not run"},
		{[]string{"studies.enabled=false"}, "Study resources are not run, because studies.enabled is false", "apply -f"},
		{[]string{`studies.namespaces=["a","b"]`}, "Start a study of the namespace a or b:\n\n  kubectl -n a apply", "tuning apply"},
		{[]string{`studies.namespaces=["*"]`}, "Start a study of any namespace", "of the namespace"},
		{[]string{"coordinator.service.port=80"}, "service/f-fantasia 80:http", "8080"},
		{[]string{`pools.default.kubejob.template="kind: Job"`}, "get jobs -L fantasia.dev/study", "never"},
		{[]string{"coordinator.requireToken=true"}, "export FANTASIA_TOKEN=$(kubectl -n tuning get secret f-fantasia-token -o " +
			"jsonpath='{.data.token}' | base64 -d)\n", "The API is open"},
		{[]string{"coordinator.requireToken=true", `coordinator.tokensSecret="mine"`}, "export FANTASIA_TOKEN=TOKEN\n", "base64"},
		{nil, "The API is open: everybody who reaches it may create studies, because coordinator.requireToken is false.", "FANTASIA_TOKEN"},
		{[]string{`pools={}`}, "Studies wait until you add a pool", "pool default"},
		{[]string{`pools.default.autoscaling.method="leader"`}, "0 to 10 pods, scaled by leader, of 1 slot", "1 pod of"},
	} {
		text := notes(t, values(c.set...)...)
		if !strings.Contains(text, c.want) || strings.Contains(text, c.absent) {
			t.Errorf("with %q, want %q and not %q:\n%s", c.set, c.want, c.absent, text)
		}
	}
}
