package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// unaudited are rights that the recorded run did not use, and why the chart grants them.
var unaudited = map[string]string{
	"worker list pods":          "the recorded API server streams lists as watches; older ones do not",
	"worker create pods/attach": "Jobs in stream mode attach by POST over SPDY; the recorded tests have no such Jobs",
	"worker get pods/attach":    "Jobs in stream mode attach by GET over WebSocket; the recorded tests have no such Jobs",
}

// TestRolesGrantWhatWasAudited holds that the chart grants its service accounts each right that a real
// API server's audit log shows in use, and no others. testdata/audited.json has what the log of
// Kubernetes v1.36.3 showed of them during TestRelease, TestStudies, TestJobsOfATeam and
// TestKubejobSample of deploy/e2e: the requests that were allowed, at the level Metadata. The log has
// one other kind, two requests that were refused while a release's roles were being removed.
func TestRolesGrantWhatWasAudited(t *testing.T) {
	text, err := os.ReadFile("testdata/audited.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct {
		Account, Group, Resource string
		Verbs                    []string
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range recorded {
		for _, verb := range r.Verbs {
			used[right(r.Account, verb, r.Group, r.Resource)] = true
		}
	}
	granted := grantedRights(t)
	for r := range used {
		if !granted[r] {
			t.Errorf("the chart does not grant: %s", r)
		}
	}
	for r := range granted {
		if reason := unaudited[r]; used[r] == (reason != "") {
			t.Errorf("the chart grants: %s; used in the audit log: %t, reason to grant it without use: %q", r, used[r], reason)
		}
	}
	for r := range unaudited {
		if !granted[r] {
			t.Errorf("the chart no longer grants: %s", r)
		}
	}
}

// grantedRights are the rights of the chart's roles for its programs, over all its files of values and
// where studies bring Jobs.
func grantedRights(t *testing.T) map[string]bool {
	t.Helper()
	granted := map[string]bool{}
	releases := [][]string{values(`studies.enabled=true`, `studies.namespaces=["team-a"]`, `studies.jobs={"team-a":{}}`,
		`pools.default={"kubejob":{"allowStudyJobs":true}}`)}
	for _, file := range combinations(t) {
		releases = append(releases, []string{"--values=" + file})
	}
	for _, args := range releases {
		for pkg, rule := range rules(t, args...) {
			account := "coordinator"
			if pkg == "worker/kubejob" {
				account = "worker"
			}
			for _, verb := range strs(rule.at("verbs")) {
				for _, resource := range strs(rule.at("resources")) {
					granted[right(account, verb, strs(rule.at("apiGroups"))[0], resource)] = true
				}
			}
		}
	}
	return granted
}

// right names a right. Other kinds in place of Jobs and Deployments are used like these.
func right(account, verb, group, resource string) string {
	known := []string{"", "coordination.k8s.io", "fantasia.dev", "apps"}
	switch {
	case strings.HasSuffix(resource, "/scale"):
		resource = "workload/scale"
	case !slices.Contains(known, group):
		resource = "workload"
	}
	return fmt.Sprint(account, " ", verb, " ", resource)
}
