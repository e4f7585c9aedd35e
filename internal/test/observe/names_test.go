package observe

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

const (
	rulesFile     = "deploy/helm/fantasia/files/rules.yaml"
	dashboardFile = "deploy/helm/fantasia/files/dashboard.json"
	document      = "docs/operate/observe.md"
)

// blocks returns the lines of a document's fenced blocks of a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	var lines []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(readFile(t, document), -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(m[1]), "\n")...)
	}
	if len(lines) < 3 {
		t.Fatalf("%s has only %d queries in %s", document, len(lines), language)
	}
	return lines
}

// queries are the document's in PromQL.
func queries(t *testing.T) []string { return blocks(t, "promql") }

// exported are the names that Prometheus has for the metrics of the document's
// table, which is held against telemetry/names.go elsewhere.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(fantasia\\.[a-z_.]+)` \\| ([a-z]+)(, s)? \\|").
		FindAllStringSubmatch(readFile(t, document), -1) {
		name := strings.ReplaceAll(m[1], ".", "_")
		if m[3] != "" {
			name += "_seconds"
		}
		switch m[2] {
		case "counter":
			names[name+"_total"] = true
		case "histogram":
			names[name+"_bucket"], names[name+"_sum"], names[name+"_count"] = true, true, true
		default:
			names[name] = true
		}
	}
	if len(names) < 20 {
		t.Fatalf("found only %d metrics", len(names))
	}
	return names
}

// attributes are the keys that telemetry/names.go has.
func attributes(t *testing.T) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for _, m := range regexp.MustCompile(`attribute\.Key\("([a-z_.]+)"\)`).FindAllStringSubmatch(readFile(t, "telemetry/names.go"), -1) {
		keys[m[1]] = true
	}
	return keys
}

// rules is a file of rules as Prometheus reads it.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Record, Alert, Expr, For string
			Labels, Annotations      map[string]string
		}
	}
}

func readRules(t *testing.T) (r rules) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(readFile(t, rulesFile)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// expressions are all PromQL of dashboard, rules and document, with where it is.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, q := range queries(t) {
		found[q] = document
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			found[r.Expr] = rulesFile
		}
	}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			found[target.Expr] = dashboardFile
		}
	}
	return found
}

// TestQueriesNameWhatExists holds that every metric and every label that a query
// names is made.
func TestQueriesNameWhatExists(t *testing.T) {
	known := exported(t)
	for key := range attributes(t) {
		known[strings.ReplaceAll(key, ".", "_")] = true
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			known[r.Record] = true
		}
	}
	used := 0
	for expr, where := range expressions(t) {
		for _, word := range regexp.MustCompile(`fantasia[_:][a-z0-9_:]+`).FindAllString(expr, -1) {
			used++
			if !known[word] {
				t.Errorf("%s: nothing is called %s: %s", where, word, expr)
			}
		}
	}
	if used < 100 {
		t.Errorf("found only %d names in the queries", used)
	}
	keys := attributes(t)
	for _, line := range blocks(t, "jaeger") {
		for _, m := range regexp.MustCompile(`"([a-z.]+)":`).FindAllStringSubmatch(line, -1) {
			if !keys[m[1]] && m[1] != "error" && !strings.HasPrefix(m[1], "fantasia.parameter.") {
				t.Errorf("%s: no attribute is called %s: %s", document, m[1], line)
			}
		}
	}
}

// TestQueriesSelectAnInstallation holds that the rules and the dashboard never mix the series of two
// installations: each series that they read is selected by the label.
func TestQueriesSelectAnInstallation(t *testing.T) {
	known := exported(t)
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			known[r.Record] = r.Record != ""
		}
	}
	matchers := map[string]string{rulesFile: `{installation=~".*"`, dashboardFile: `{installation=~"$installation"`}
	for expr, where := range expressions(t) {
		if where == document {
			continue
		}
		for _, at := range regexp.MustCompile(`fantasia[_:][a-z0-9_:]+`).FindAllStringIndex(expr, -1) {
			if known[expr[at[0]:at[1]]] && !strings.HasPrefix(expr[at[1]:], matchers[where]) {
				t.Errorf("%s: %s reads the series of all installations: %s", where, expr[at[0]:at[1]], expr)
			}
		}
	}
}

// TestAlertsAreListed holds that the document says what to do about every alert,
// and that each alert says how bad it is and what it means.
func TestAlertsAreListed(t *testing.T) {
	var alerts []string
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			alerts = append(alerts, r.Alert)
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s lacks a summary, a description or a severity", r.Alert)
			}
		}
	}
	_, text, _ := strings.Cut(readFile(t, document), "<!-- alerts")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(Fantasia[A-Za-z]+)` \\|").FindAllStringSubmatch(text, -1) {
		listed = append(listed, m[1])
	}
	if diff := cmp.Diff(alerts, listed); diff != "" {
		t.Errorf("%s lists (+) other alerts than %s has (-):\n%s", document, rulesFile, diff)
	}
}

// dashboard is the part of Grafana's model that is looked at here.
type dashboard struct {
	Title, UID string
	Panels     []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboard holds that panels have ids of their own, do not cover each other,
// and show every metric.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	ids, cells, text := map[int]bool{}, map[[2]int]string{}, ""
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q has the id %d, which is another's", p.Title, p.ID)
		}
		ids[p.ID] = true
		if (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("panel %q of type %s has %d queries", p.Title, p.Type, len(p.Targets))
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q covers %q at %d,%d", p.Title, other, x, y)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			text += target.Expr + "\n"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exported(t))) {
		if name, of := strings.CutSuffix(name, "_bucket"); of && !strings.Contains(text, name+"_bucket") {
			t.Errorf("no panel shows %s", name)
		} else if !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") && !of && !strings.Contains(text, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}
