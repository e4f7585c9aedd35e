package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// Two releases in one Prometheus: each labels its series, and its rules, its dashboard and its
// scaling read only those.
func TestMetricsOfARelease(t *testing.T) {
	const mine = `installation="tuning/f"`
	all := objects(t, render(t, values("metrics.serviceMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboard.enabled=true",
		`pools.default.autoscaling.method="keda"`)...))
	for kind, endpoints := range map[string]string{"ServiceMonitor": "endpoints", "PodMonitor": "podMetricsEndpoints"} {
		for _, m := range all {
			if m.text("kind") != kind {
				continue
			}
			if got := fmt.Sprint(m.list("spec", endpoints)[0].at("relabelings")); got != "[map[replacement:tuning/f targetLabel:installation]]" {
				t.Errorf("%s relabels by %s", kind, got)
			}
		}
	}
	shipped, err := os.ReadFile("fantasia/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := yaml.Marshal(find(t, all, "PrometheusRule", "f-fantasia").at("spec"))
	if err != nil {
		t.Fatal(err)
	}
	if n, want := strings.Count(string(rules), mine), strings.Count(string(shipped), `installation=~".*"`); n != want || n < 20 ||
		strings.Contains(string(rules), "=~") {
		t.Errorf("%d matchers of this release's series, want %d, in\n%s", n, want, rules)
	}
	var dashboard struct {
		UID, Title string
		Templating struct {
			List []struct {
				Name    string
				Current struct{ Value string }
			}
		}
	}
	text := find(t, all, "ConfigMap", "dashboard").text("data", "f-fantasia.json")
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(dashboard.UID, "fantasia-") || dashboard.Title != "Fantasia tuning/f" {
		t.Errorf("the dashboard is %q, with the uid %q", dashboard.Title, dashboard.UID)
	}
	if v := dashboard.Templating.List[1]; v.Name != "installation" || v.Current.Value != "tuning/f" {
		t.Errorf("the dashboard opens with %+v", v)
	}
	if q := find(t, all, "ScaledObject", "worker-default").list("spec", "triggers")[0].text("metadata", "query"); strings.Count(q, mine) != 2 {
		t.Errorf("KEDA asks for %s", q)
	}
}

// Rules without the monitors that label the series would find no leader.
func TestRulesNeedMonitors(t *testing.T) {
	_, err := run(t, "helm", append([]string{"template", "f", chart}, values("metrics.rules.enabled=true")...)...)
	if err == nil || !strings.Contains(err.Error(), "metrics.rules.enabled: the rules read the series that carry this release's label "+
		"installation") {
		t.Errorf("rules without monitors: %v", err)
	}
}
