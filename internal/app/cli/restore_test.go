package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

// clusterStudy is a Study resource of namespace team.
func clusterStudy(name, uid string) *kube.Resource {
	return &kube.Resource{Namespace: "team", Name: name, UID: types.UID(uid), Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// resourceBackup writes a backup with a running study of each resource, and one of none.
func resourceBackup(t *testing.T, resources ...*kube.Resource) string {
	t.Helper()
	records := map[string][]byte{}
	put := func(id, name string) {
		definition, err := studyfile.Parse([]byte(`{apiVersion: fantasia.dev/v1, kind: Study, metadata: {name: any}, spec: {
			objective: {metric: loss, direction: minimize}, parameters: [{name: x, type: float, min: 0, max: 1}],
			budget: {maxTrials: 4}, trial: {command: ["true"]}}}`))
		if err != nil {
			t.Fatal(err)
		}
		definition.Metadata.Name = name
		s := record.Study{ID: id, Created: time.Now(), Definition: *definition}
		for key, v := range map[string]any{
			"names/" + name: map[string]string{"id": id}, "studies/" + id + "/spec": s, "studies/" + id + "/head": s,
			"studies/" + id + "/status": record.Status{State: study.Running, Started: time.Now()},
		} {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			records[key] = text
		}
	}
	for _, r := range resources {
		put(r.ID(), r.StudyName())
	}
	put("01k6zzzzzzzzzzzzzzzzzzzzzz", "plain")
	var text bytes.Buffer
	path := filepath.Join(t.TempDir(), "studies.backup")
	if err := backup.WriteRecords(&text, "test", records); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// apiServer answers as the API server of a cluster that has some resources, and returns the path
// of a kubeconfig file. Without resources, the cluster lacks the definition of studies.
func apiServer(t *testing.T, resources ...*kube.Resource) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/fantasia.dev/v1/namespaces/{namespace}/studies/{name}", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, r := range resources {
			if r.Namespace == q.PathValue("namespace") && r.Name == q.PathValue("name") {
				fmt.Fprintf(w,
					`{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"namespace": %q, "name": %q, "uid": %q, "creationTimestamp": %q}}`,
					r.Namespace, r.Name, r.UID, r.Created.Format(time.RFC3339))
				return
			}
		}
		if len(resources) == 0 {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "studies.fantasia.dev \"%[1]s\" not found",
			"reason": "NotFound", "details": {"name": %[1]q, "group": "fantasia.dev", "kind": "studies"}, "code": 404}`, q.PathValue("name"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
		clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fantasia runs a command and returns its exit code and all that it writes.
func fantasia(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := cli.Main(t.Context(), args, cli.Options{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Writer(&out)})
	return code, out.String()
}

// The list says what becomes of studies that came from resources, before anything changes. A
// resource with the same name but another UID is another one.
func TestRestoreListsStudiesOfResources(t *testing.T) {
	there, again, gone := clusterStudy("there", "1"), clusterStudy("again", "2"), clusterStudy("gone", "3")
	path := resourceBackup(t, there, again, gone)
	code, out := fantasia(t, "restore", path, "--dry-run", "--kubeconfig", apiServer(t, there, clusterStudy("again", "4")))
	for name, fate := range map[string]string{"there": "goes on", "again": "is stopped", "gone": "is stopped"} {
		if !strings.Contains(out, "study team."+name+", id "+
			clusterStudy(name, map[string]string{"there": "1", "again": "2", "gone": "3"}[name]).ID()+", 0 trials: "+fate) {
			t.Errorf("study %s: want %q in\n%s", name, fate, out)
		}
	}
	if code != cli.ExitOK || strings.Contains(out, "plain") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	// In the wrong cluster, nothing is stopped by mistake.
	if code, out := fantasia(t, "restore", path, "--dry-run", "--kubeconfig", apiServer(t)); code != cli.ExitError ||
		!strings.Contains(out, "want the cluster that the study ran in") {
		t.Errorf("a cluster without studies: exit code %d:\n%s", code, out)
	}
	if code, out := fantasia(t, "restore", path, "--dry-run", "--kubeconfig", filepath.Join(t.TempDir(), "none")); code == cli.ExitOK ||
		!strings.Contains(out, "came from a Kubernetes resource") {
		t.Errorf("no cluster: exit code %d:\n%s", code, out)
	}
}

// A state directory has no cluster, so no study of a resource goes on in it.
func TestRestoreIntoDirectoryStopsStudiesOfResources(t *testing.T) {
	gone := clusterStudy("gone", "3")
	path, state := resourceBackup(t, gone), filepath.Join(t.TempDir(), "state")
	if code, out := fantasia(t, "restore", path, "--state", state, "--dry-run"); code != cli.ExitOK || !strings.Contains(out, "team.gone") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Fatalf("a dry run has made the directory: %v", err)
	}
	if code, out := fantasia(t, "restore", path, "--state", state); code != cli.ExitOK ||
		!strings.Contains(out, "2 studies, 0 trials restored") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	code, out := fantasia(t, "study", "get", "team.gone", "--state", state)
	if code != cli.ExitOK || !strings.Contains(out, "STOPPED") || !strings.Contains(out, "where its resource team/gone is not") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out := fantasia(t, "study", "get", "plain", "--state", state); code != cli.ExitOK || strings.Contains(out, "STOPPED") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
