package helm

import (
	"fmt"
	"strings"
	"testing"
)

// TestSecretsAreInSecretsOnly checks for every combination of values that what the chart draws, or
// gets as a password or token, is in no object but its Secret, and that no program gets it in
// its environment, where its children and whoever reads /proc would find it. Only helm test, which
// has a token for its own study alone, does.
func TestSecretsAreInSecretsOnly(t *testing.T) {
	drawn := 0
	for _, file := range combinations(t) {
		all := objects(t, render(t, "--values="+file))
		for _, secret := range all {
			if secret.kind() != "Secret" {
				continue
			}
			values, _ := secret.at("stringData").(map[string]any)
			for key, v := range values {
				value := fmt.Sprint(v)
				if len(value) < 16 || strings.ContainsAny(value, " \n") { // a name, or a file such as that of hashes
					continue
				}
				drawn++
				for _, o := range all {
					if o.kind() != "Secret" && strings.Contains(fmt.Sprint(o), value) {
						t.Errorf("%s: %s of the Secret %s is in the %s %s", file, key, secret.name(), o.kind(), o.name())
					}
				}
			}
		}
		for name, pod := range pods(all) {
			for _, c := range append(pod.list("spec", "initContainers"), pod.list("spec", "containers")...) {
				for _, e := range c.list("env") {
					if ref := e.at("valueFrom", "secretKeyRef"); ref != nil && !strings.HasSuffix(name, "-test") {
						t.Errorf("%s: %s/%s gets %s from the Secret %v", file, name, c.text("name"), e.text("name"), ref)
					}
				}
			}
		}
	}
	if drawn == 0 {
		t.Error("no Secret has a value")
	}
}
