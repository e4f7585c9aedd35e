package helm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// peers returns the peers that a policy's rule permits: names of the release's
// components for selectors that match them, and words for others.
func peers(rule resource, direction string, components map[string]map[string]any) []string {
	list := rule.list(direction)
	if len(list) == 0 {
		return []string{"anywhere"}
	}
	var names []string
	for _, p := range list {
		labels, _ := p.at("podSelector", "matchLabels").(map[string]any)
		found := false
		for name, own := range components {
			matches := len(labels) > 0 && p.at("namespaceSelector") == nil
			for key, value := range labels {
				matches = matches && own[key] == value
			}
			if matches {
				names, found = append(names, name), true
			}
		}
		switch {
		case found:
		case p.at("ipBlock") != nil:
			names = append(names, p.text("ipBlock", "cidr"))
		default:
			names = append(names, "others")
		}
	}
	return names
}

// reach returns the set of "from, to, port" that the policies allow. A connection
// between two of the release's pods needs the egress of one and the ingress of the
// other; all others need only the policy at the release's end.
func reach(t *testing.T, all []resource) map[[3]string]bool {
	t.Helper()
	components := map[string]map[string]any{}
	for _, pod := range pods(all) {
		labels, _ := pod.at("metadata", "labels").(map[string]any)
		name := fmt.Sprint(labels["app.kubernetes.io/component"])
		if pool, ok := labels["fantasia.dev/pool"]; ok {
			name += " of " + fmt.Sprint(pool)
		}
		components[name] = labels
	}
	out, in := map[[3]string]bool{}, map[[3]string]bool{}
	covered := map[string]bool{}
	for _, policy := range all {
		if policy.kind() != "NetworkPolicy" {
			continue
		}
		of := peers(resource{"to": []any{map[string]any{"podSelector": policy.at("spec", "podSelector")}}}, "to", components)
		for _, name := range of {
			covered[name] = true
			for _, rule := range policy.list("spec", "egress") {
				for _, peer := range peers(rule, "to", components) {
					for _, port := range rule.list("ports") {
						out[[3]string{name, peer, fmt.Sprint(port.at("port"))}] = true
					}
				}
			}
			for _, rule := range policy.list("spec", "ingress") {
				for _, peer := range peers(rule, "from", components) {
					for _, port := range rule.list("ports") {
						in[[3]string{peer, name, fmt.Sprint(port.at("port"))}] = true
					}
				}
			}
		}
	}
	for name := range components {
		if !covered[name] {
			t.Errorf("no policy covers the pods of %s", name)
		}
	}
	allowed := map[[3]string]bool{}
	for edge := range out {
		if components[edge[1]] == nil || in[edge] {
			allowed[edge] = true
		} else {
			t.Errorf("%s may leave for %s:%s, but is not let in", edge[0], edge[1], edge[2])
		}
	}
	for edge := range in {
		if components[edge[0]] == nil {
			allowed[edge] = true
		}
	}
	return allowed
}

const networkTitle = "<!-- who may reach whom: made from the policies by TestNetworkTable -->\n"

// TestNetworkTable checks the table of connections in docs/operate/kubernetes.md for a release
// with everything bundled, studies as resources, and one pool.
func TestNetworkTable(t *testing.T) {
	allowed := reach(t, objects(t, render(t, values(`telemetry.otlpEndpoint="http://collector:4318"`,
		`networkPolicy.metricsFrom=[{"podSelector":{}}]`)...)))
	rows := map[[2]string][]string{}
	for edge := range allowed {
		rows[[2]string{edge[0], edge[1]}] = append(rows[[2]string{edge[0], edge[1]}], edge[2])
	}
	var table strings.Builder
	table.WriteString(networkTitle + "| from | to | ports |\n| --- | --- | --- |\n")
	for _, key := range slices.SortedFunc(maps.Keys(rows), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) }) {
		slices.Sort(rows[key])
		fmt.Fprintf(&table, "| %s | %s | %s |\n", key[0], key[1], strings.Join(slices.Compact(rows[key]), ", "))
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "operate", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, documented, _ := strings.Cut(string(text), networkTitle)
	documented, _, _ = strings.Cut(documented, "\n\n")
	if diff := cmp.Diff(table.String(), networkTitle+documented+"\n"); diff != "" {
		t.Errorf("docs/operate/kubernetes.md says (+) otherwise than the policies (-):\n%s\n%s", diff, table.String())
	}
}

// TestWorkersReachLittle checks what a worker's pod, which runs untrusted code, must
// not reach, for every combination of values with policies.
func TestWorkersReachLittle(t *testing.T) {
	for _, file := range combinations(t) {
		all := objects(t, render(t, "--values="+file))
		if !strings.Contains(fmt.Sprint(all), "NetworkPolicy") {
			continue
		}
		for edge := range reach(t, all) {
			worker := strings.HasPrefix(edge[0], "worker")
			if worker && (edge[1] == "coordinator" || edge[1] == "etcd" || strings.HasPrefix(edge[1], "worker") || edge[2] == "2379" ||
				edge[2] == "2380") {
				t.Errorf("%s: %v is allowed", file, edge)
			}
			if strings.HasPrefix(edge[1], "worker") && edge[0] != "others" {
				t.Errorf("%s: %v is allowed", file, edge)
			}
		}
	}
}
