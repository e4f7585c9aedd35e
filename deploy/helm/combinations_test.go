package helm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCombinations checks that every values file gives manifests that helm's linter and
// kubeconform accept and that follow the rules below.
func TestCombinations(t *testing.T) {
	schemas := t.TempDir()
	if err := writeSchemas(t.Context(), chart, schemas); err != nil {
		t.Fatal(err)
	}
	for _, file := range combinations(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if _, err := run(t, "helm", "lint", "--strict", chart, "--values="+file); err != nil {
				t.Error(err)
			}
			text := render(t, "--values="+file)
			manifests := filepath.Join(t.TempDir(), "manifests.yaml")
			if err := os.WriteFile(manifests, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := run(t, "kubeconform", "-strict", "-schema-location", filepath.Join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json"),
				manifests); err != nil {
				t.Error(err)
			}
			all := objects(t, text)
			checkPods(t, all)
			checkAccounts(t, all)
			checkLabels(t, all)
		})
	}
}

// TestKubeconformRefuses checks that the schemas that TestCombinations uses refuse what
// Kubernetes would.
func TestKubeconformRefuses(t *testing.T) {
	schemas := t.TempDir()
	if err := writeSchemas(t.Context(), chart, schemas); err != nil {
		t.Fatal(err)
	}
	for _, manifest := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nunknown: 1\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: many}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, ports: [{port: 1}]}]}\n",
		"apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\nspec: {triggers: [{kind: prometheus}]}\n",
		"apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: a}\n",
	} {
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run(t, "kubeconform", "-strict", "-schema-location", filepath.Join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json"),
			file); err == nil {
			t.Errorf("accepted %q: %s", manifest, out)
		}
	}
}

// checkPods checks the restricted profile of Kubernetes' pod security standards, and
// that each pod has limits and probes.
func checkPods(t *testing.T, all []resource) {
	t.Helper()
	for name, pod := range pods(all) {
		security := resource(map[string]any{"s": pod.at("spec", "securityContext")})
		if security.at("s", "runAsNonRoot") != true || security.text("s", "seccompProfile", "type") != "RuntimeDefault" ||
			security.at("s", "runAsUser") == 0 {
			t.Errorf("%s runs with %v", name, security)
		}
		for _, key := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			if pod.at("spec", key) != nil {
				t.Errorf("%s sets %s", name, key)
			}
		}
		for _, volume := range pod.list("spec", "volumes") {
			if volume.at("hostPath") != nil {
				t.Errorf("%s mounts the host's %v", name, volume)
			}
		}
		for _, c := range append(pod.list("spec", "containers"), pod.list("spec", "initContainers")...) {
			s := resource(map[string]any{"s": c.at("securityContext")})
			if s.at("s", "allowPrivilegeEscalation") != false || s.text("s", "capabilities", "drop", 0) != "ALL" ||
				s.at("s", "readOnlyRootFilesystem") != true || s.at("s", "privileged") != nil {
				t.Errorf("%s's container %s runs with %v", name, c.text("name"), s)
			}
			if c.at("resources", "requests") == nil {
				t.Errorf("%s's container %s requests nothing", name, c.text("name"))
			}
			if strings.HasSuffix(c.text("image"), ":latest") || !strings.Contains(c.text("image"), ":") {
				t.Errorf("%s's container %s has the image %q", name, c.text("name"), c.text("image"))
			}
		}
	}
}

// checkAccounts checks that pods' service accounts exist, and that only those with a
// role have a token.
func checkAccounts(t *testing.T, all []resource) {
	t.Helper()
	accounts, bound := map[string]bool{"trainer": true}, map[string]bool{"trainer": true}
	for _, o := range all {
		switch o.kind() {
		case "ServiceAccount":
			accounts[o.name()] = true
			if o.at("automountServiceAccountToken") != false {
				t.Errorf("service account %s mounts its token everywhere", o.name())
			}
		case "RoleBinding", "ClusterRoleBinding":
			for _, s := range o.list("subjects") {
				bound[s.text("name")] = true
			}
		}
	}
	for name, pod := range pods(all) {
		account := pod.text("spec", "serviceAccountName")
		if !accounts[account] {
			t.Errorf("%s runs as %q, which does not exist", name, account)
		}
		if token := pod.at("spec", "automountServiceAccountToken"); token == nil || token == true && !bound[account] {
			t.Errorf("%s mounts the token of %s: %v", name, account, token)
		}
	}
}

// checkLabels checks that each resource has the recommended labels.
func checkLabels(t *testing.T, all []resource) {
	t.Helper()
	for _, o := range all {
		for _, label := range []string{"name", "instance", "component", "part-of", "version", "managed-by"} {
			if o.text("metadata", "labels", "app.kubernetes.io/"+label) == "" {
				t.Errorf("%s %s lacks the label %s", o.kind(), o.name(), label)
			}
		}
	}
}
