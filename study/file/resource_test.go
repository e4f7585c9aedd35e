package file_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// A study file may be a resource as kubectl get -o yaml prints it; only its name and its
// labels are the study's.
func TestResource(t *testing.T) {
	const spec = `
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  budget: {maxTrials: 3}
  trial: {command: [train]}
`
	got, err := file.Parse([]byte(`
apiVersion: fantasia.dev/v1
kind: Study
metadata:
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
  creationTimestamp: "2026-01-02T03:04:05Z"
  finalizers: [fantasia.dev/study]
  generation: 1
  labels: {team: a}
  managedFields: [{manager: kubectl}]
  name: digits
  namespace: team-a
  resourceVersion: "7"
  uid: 8d6b7e0f-4ad6-4a2f-8f43-5d6d4b2f7c11
status: {state: RUNNING, done: 0}
` + spec))
	if err != nil {
		t.Fatal(err)
	}
	want, err := file.Parse([]byte("apiVersion: fantasia.dev/v1\nkind: Study\nmetadata: {name: digits, labels: {team: a}}\n" + spec))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" ||
		!cmp.Equal(got.Metadata, study.Metadata{Name: "digits", Labels: map[string]string{"team": "a"}}) {
		t.Errorf("as a resource the study is another one (-want +got):\n%s", diff)
	}
}
