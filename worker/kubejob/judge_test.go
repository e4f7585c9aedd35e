package kubejob

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recording is what a cluster said of an attempt, the last time that it said so.
type recording struct {
	Job  *batchv1.Job
	Pods []corev1.Pod
}

// recorded reads a recording of a real cluster: see e2e_test.go.
func recorded(t *testing.T, name string) evidence {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	e := evidence{deleted: map[types.UID]time.Time{}, now: time.Now()}
	for i := range r.Pods {
		p := &r.Pods[i]
		e.pods = append(e.pods, p)
		if at, ok := deletionOf(p); ok {
			e.deleted[p.UID] = at
		}
	}
	e.object = asObject(t, r.Job)
	return e
}

func asObject(t *testing.T, j *batchv1.Job) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	object.Object = map[string]any{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		t.Fatal(err)
	}
	return &object
}

func conditions(t *testing.T) (success, failure *condition) {
	t.Helper()
	s, f := conditionsOf(jobKind)
	var err error
	if success, err = compileCondition(s); err != nil {
		t.Fatal(err)
	}
	if failure, err = compileCondition(f); err != nil {
		t.Fatal(err)
	}
	return success, failure
}

// TestJudgeRecordings tells apart what a cluster of Kubernetes 1.36 has said.
func TestJudgeRecordings(t *testing.T) {
	success, failure := conditions(t)
	for name, want := range map[string]struct {
		state state
		cause string
		code  int
	}{
		"completed-by-its-log":         {succeeded, "", 0},
		"completed-by-the-report-file": {succeeded, "", 0},
		"exit-1":                       {failed, "exit code 1", 1},
		"exit-75":                      {retry, "75", 75},
		"out-of-memory":                {outOfMemory, "its limit is 64Mi", 137},
		"evicted":                      {disrupted, "EvictionByEvictionAPI", -1},
		"pod-deleted":                  {disrupted, "was deleted", -1},
		"deadline-of-the-Job":          {deadline, "longer than specified deadline", -1},
		"no-such-program":              {failed, "executable file not found", 128},
		"no-such-image":                {waiting, "ErrImagePull", -1},
		"no-such-node":                 {waiting, "Unschedulable", -1},
		"not-of-this-level":            {waiting, "no pod", -1},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(recorded(t, name), success, failure, "")
			if v.state != want.state || !strings.Contains(v.cause, want.cause) || v.code != want.code {
				t.Errorf("judged %d, %q, code %d; want %d, …%s…, code %d", v.state, v.cause, v.code, want.state, want.cause, want.code)
			}
		})
	}
}
