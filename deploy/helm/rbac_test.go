package helm

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// callers are the packages that call the Kubernetes API, from the root of the module, and how their
// rules are told from others: by a resource of the rule's role.
var callers = map[string]func(resources string) bool{
	"coordinator/scale":      func(r string) bool { return strings.Contains(r, "/scale") },
	"coordinator/leadership": func(r string) bool { return r == "leases" },
	"coordinator/podcost":    func(r string) bool { return r == "pods" },
	"coordinator/kube":       func(r string) bool { return strings.Contains(r, "studies/status") },
	"worker/kubejob":         func(r string) bool { return strings.Contains(r, "pods/log") },
}

// TestRolesGrantWhatIsCalled holds that the chart grants each package the verbs that its code calls,
// and no others. The end-to-end tests hold that none is missing for a resource.
func TestRolesGrantWhatIsCalled(t *testing.T) {
	granted := map[string]map[string]bool{}
	for pkg := range callers {
		granted[pkg] = map[string]bool{}
	}
	for _, file := range combinations(t) {
		for pkg, rule := range rules(t, "--values="+file) {
			for _, verb := range strs(rule.at("verbs")) {
				granted[pkg][verb] = true
			}
		}
	}
	for pkg, verbs := range granted {
		called := slices.Sorted(maps.Keys(verbsOf(t, pkg)))
		if diff := cmp.Diff(called, slices.Sorted(maps.Keys(verbs))); diff != "" {
			t.Errorf("verbs that %s calls (-) and that the chart grants it (+):\n%s", pkg, diff)
		}
	}
}

// aggregated reports whether a role is for people: it adds to the roles admin, edit or view.
// rules are the rules of the roles that the chart has for its programs, each with the package that
// calls what it grants.
func rules(t *testing.T, args ...string) iter.Seq2[string, resource] {
	return func(yield func(pkg string, rule resource) bool) {
		for _, role := range objects(t, render(t, args...)) {
			labels, _ := role.at("metadata", "labels").(map[string]any)
			if role.kind() != "Role" && role.kind() != "ClusterRole" || aggregated(labels) {
				continue
			}
			var resources []string
			for _, rule := range role.list("rules") {
				resources = append(resources, strs(rule.at("resources"))...)
			}
			pkg := ownerOf(t, role.name(), strings.Join(resources, " "))
			for _, rule := range role.list("rules") {
				if !yield(pkg, rule) {
					return
				}
			}
		}
	}
}

func aggregated(labels map[string]any) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(labels)), func(l string) bool { return strings.Contains(l, "/aggregate-to-") })
}

func ownerOf(t *testing.T, role, resources string) string {
	t.Helper()
	for pkg, owns := range callers {
		if owns(resources) {
			return pkg
		}
	}
	t.Fatalf("no package is known that needs the role %s with the resources %s", role, resources)
	return ""
}

func strs(list any) (out []string) {
	all, _ := list.([]any)
	for _, v := range all {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// verbsOf returns the verbs of the Kubernetes API that a package calls: each call has the options of its
// verb, and an informer lists and watches.
func verbsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	verbs := map[string]bool{}
	see := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok && from(s, "metav1") && strings.HasSuffix(s.Sel.Name, "Options") {
				verbs[strings.ToLower(strings.TrimSuffix(s.Sel.Name, "Options"))] = true
			}
		case *ast.SelectorExpr:
			if from(n, "kubewatch") {
				verbs["list"], verbs["watch"] = true, true
			}
		}
		return true
	}
	dir := filepath.Join("..", "..", filepath.FromSlash(pkg))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, see)
		return nil
	})
	if err != nil || len(verbs) == 0 {
		t.Fatalf("%s calls %v: %v", pkg, verbs, err)
	}
	return verbs
}

// from reports whether a name is of the package that a file calls pkg.
func from(s *ast.SelectorExpr, pkg string) bool {
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == pkg
}

// TestPolicyPortsAreListenedOn holds that the pods listen on each port to which the chart's policies let
// somebody in, and that these leave out only ports for probes and metrics, which the node may reach anyway.
func TestPolicyPortsAreListenedOn(t *testing.T) {
	for _, file := range combinations(t) {
		all := objects(t, render(t, "--values="+file))
		for workload, pod := range pods(all) {
			listens, opens := map[string]string{}, map[string]bool{} // the names of ports by number
			for _, c := range pod.list("spec", "containers") {
				for _, p := range c.list("ports") {
					listens[fmt.Sprint(p.at("containerPort"))] = p.text("name")
				}
			}
			selected := false
			for _, policy := range all {
				want, _ := policy.at("spec", "podSelector", "matchLabels").(map[string]any)
				labels, _ := pod.at("metadata", "labels").(map[string]any)
				if policy.kind() != "NetworkPolicy" || !covers(want, labels) {
					continue
				}
				selected = true
				for _, rule := range policy.list("spec", "ingress") {
					for _, p := range rule.list("ports") {
						opens[fmt.Sprint(p.at("port"))] = true
					}
				}
			}
			for port, name := range listens {
				if selected && !opens[port] && !slices.Contains([]string{"probes", "metrics", "monitor"}, name) {
					t.Errorf("%s: %s listens on port %s (%s), which no policy opens", filepath.Base(file), workload, port, name)
				}
			}
			for port := range opens {
				if listens[port] == "" {
					t.Errorf("%s: the policies open port %s of %s, which listens on %v", filepath.Base(file), port, workload, listens)
				}
			}
		}
	}
}

func covers(want, labels map[string]any) bool {
	for key, value := range want {
		if labels[key] != value {
			return false
		}
	}
	return len(want) > 0
}
