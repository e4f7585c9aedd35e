package helm

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

// A name that is not accepted is reported at its place, with what would be accepted.
func TestNamesInMapsAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		`pools={"Gpu_1":{}}`:               `at '/pools/Gpu_1': value must be 'under another name: 1 to 20 of a-z, 0-9 and, between them, -'`,
		`pools={"helm-test":{}}`:           `at '/pools/helm-test': value must be 'under another name: this one is the chart\'s own'`,
		`studies.jobs={"Team_A":{}}`:       `at '/studies/jobs/Team_A': value must be 'under another name: the name of a namespace`,
		`studies.pools={"Team_A":["a"]}`:   `at '/studies/pools/Team_A': value must be 'under another name: * or the name of a namespace`,
		`studies.pools={"team-a":["A"]}`:   `at '/studies/pools/team-a/0': 'A' does not match`,
		`commonLabels={"a b":"c"}`:         `at '/commonLabels/a b': value must be 'under another name: 1 to 63 letters`,
		`commonLabels={"a":"c d"}`:         `at '/commonLabels/a': 'c d' does not match`,
		`podAnnotations={"a b":"c"}`:       `at '/podAnnotations/a b': value must be 'under another name`,
		`poolDefaults.podLabels={"a b":1}`: `at '/poolDefaults/podLabels/a b': value must be 'under another name`,
		`telemetry.env={"A B":"c"}`:        `at '/telemetry/env/A B': value must be 'under another name: the name of a variable`,
		`studies.kinds={"x-y":{"apiVersion":"a/v1","resource":"b","pods":["x"]}}`: `at '/studies/kinds/x-y': value must be 'under another name: ` +
			`the name of a kind, such as PyTorchJob`,
	} {
		_, err := run(t, "helm", append([]string{"template", "f", chart, "--namespace=tuning"}, values(set)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", set, err, want)
		}
	}
	render(t, values(`commonLabels={"example.com/cost-center":"A_1.b"}`, `podAnnotations={"example.com/note":"any text: at all"}`,
		`poolDefaults.nodeSelector={"kubernetes.io/arch":""}`, `studies.pools={"*":["*"],"team-a":["default"]}`)...)
}

// The chart refuses conditions that the programs would refuse, as far as a template can see, and none that they take.
func TestBrokenConditionsAreRefused(t *testing.T) {
	for condition, want := range map[string]string{
		`status.phase = "Succeeded"`:    "want == in place of =",
		`status.phase == "Succeeded`:    "want each text closed",
		`has(status.phase`:              "want as many ( as ), got 1 and 0",
		`status.phase in ["a", "b"`:     "want as many [ as ], got 1 and 0",
		`status.a &&`:                   "want a whole condition",
		`|| status.a`:                   "want a whole condition",
		`status.a and status.b`:         "want && or ||",
		`status.a | status.b`:           "want && or ||",
		`"a=b(" == status.x`:            "",
		`self.spec.name == "it's"`:      "",
		`!has(status.b) || status.n>=3`: "",
		`-1 < status.n`:                 "",
		`{"a": [1]}["a"][0] == 1`:       "",
		`status.and == 1 && self.or`:    "",
		`status.conditions.exists(c, c.type == "Complete" && c.status == "True")`: "",
	} {
		if _, err := jobpolicy.NewCondition(condition); (err != nil) != (want != "") {
			t.Errorf("the programs take %q: %v", condition, err)
		}
		set, path := `pools.gpu={"command":["x"],"kubejob":{"template":"{}","failure":`, "pools.gpu.kubejob.failure"
		if strings.HasPrefix(condition, "status") {
			set, path = `studies.kinds={"JobSet":{"apiVersion":"a/v1","resource":"b","pods":["x"],"success":`, "studies.kinds.JobSet.success"
		}
		text, err := json.Marshal(condition)
		if err != nil {
			t.Fatal(err)
		}
		set += string(text) + "}}"
		_, err = run(t, "helm", append([]string{"template", "f", chart, "--namespace=tuning"}, values(set)...)...)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s=%s: %v", path, condition, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), path+": "+strconv.Quote(condition)) ||
			!strings.Contains(err.Error(), want)):
			t.Errorf("%s=%s: %v, want …%s…", path, condition, err, want)
		}
	}
}
