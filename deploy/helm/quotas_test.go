package helm

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/quota"
)

// Coordinators get the quotas that the values name.
func TestQuotas(t *testing.T) {
	if text := render(t); strings.Contains(text, "--quotas") {
		t.Error("the chart sets quotas that no value names")
	}
	text := render(t, values(`coordinator.quotas=["studies=5","study-bytes=50MiB"]`)...)
	if !strings.Contains(text, "--quotas=studies=5,study-bytes=50MiB") {
		t.Errorf("no flag in:\n%s", text)
	}
}

// The chart accepts the quotas that the coordinator reads, and no others.
func TestSchemaKnowsQuotas(t *testing.T) {
	var pattern *regexp.Regexp
	for _, v := range chartValues(t).Leaves() {
		if v.Name() == "coordinator.quotas" {
			items, _ := v.Schema["items"].(map[string]any)
			pattern = regexp.MustCompile(fmt.Sprint(items["pattern"]))
		}
	}
	samples := []string{"", "studies", "workers=5", "studies=5 "}
	for _, n := range quota.Names() {
		for _, bound := range []string{"0", "17", "none", "5KiB", "50MiB", "1GiB", "1MB", "-1", "1.5", "", "None", "99999999999999999999"} {
			samples = append(samples, string(n)+"="+bound)
		}
	}
	for _, text := range samples {
		if _, err := quota.Parse([]string{text}); pattern.MatchString(text) != (err == nil) {
			t.Errorf("the schema accepts %q: %t, the coordinator: %v", text, pattern.MatchString(text), err)
		}
	}
}
