package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// table returns the cells of the table that follows a comment which begins with
// the title, without its head.
func table(t *testing.T, document, title string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(readPage(t, document), "<!-- "+title)
	if !found {
		t.Fatalf("%s has no comment %q", document, title)
	}
	var rows [][]string
	for _, line := range strings.Split(rest, "\n")[1:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("%s has no table after %q", document, title)
	}
	return rows[2:]
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are those that GitHub gives a document's headings.
func anchors(t *testing.T, document string) map[string]bool {
	t.Helper()
	_, prose := split(t, document)
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(prose, -1) {
		names[strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return names
}

func TestLinksResolve(t *testing.T) {
	for _, document := range documents(t) {
		_, prose := split(t, document)
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := document
			if file != "" {
				target = path.Join(path.Dir(document), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", document, m[1])
			} else if anchor != "" && !anchors(t, target)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", document, m[1])
			}
		}
	}
}

func TestTargetsExist(t *testing.T) {
	named := regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z0-9-]*)")
	in := map[string]string{}
	for _, document := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(readPage(t, document), -1) {
			in[m[1]] = document
		}
	}
	if len(in) < 5 {
		t.Errorf("found only %d targets in the documents", len(in))
	}
	for target, document := range in {
		make := exec.CommandContext(t.Context(), "make", "-n", target)
		make.Dir = root
		if out, err := make.CombinedOutput(); err != nil {
			t.Errorf("%s names make %s: %v\n%s", document, target, err, out)
		}
	}
}

// used returns what a pattern's first group matches in the code outside of tests.
func used(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	expr, found := regexp.MustCompile(pattern), map[string]bool{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		for _, m := range expr.FindAllStringSubmatch(readPage(t, name), -1) {
			found[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestMetricsAreListed holds the list of metrics against the code that makes them.
func TestMetricsAreListed(t *testing.T) {
	var made, listed []string
	names := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(Metric[A-Za-z]+)\s+= "([^"]+)"`).FindAllStringSubmatch(readPage(t, "telemetry/names.go"),
		-1) {
		names[m[1]] = m[2]
	}
	for constant := range used(t, `telemetry\.(Metric[A-Z][A-Za-z]+)\b`) {
		if name, ok := names[constant]; ok {
			made = append(made, name)
		}
	}
	for _, row := range table(t, "docs/operate/observe.md", "metrics") {
		listed = append(listed, strings.Trim(row[0], "`"))
	}
	slices.Sort(made)
	slices.Sort(listed)
	if diff := cmp.Diff(made, listed); diff != "" {
		t.Errorf("docs/operate/observe.md lists (+) other metrics than the code makes (-):\n%s", diff)
	}
}

// TestSettingsAreListed holds the pages of the algorithms against the registry and the settings.
func TestSettingsAreListed(t *testing.T) {
	text := readPage(t, "docs/tune/algorithms.md")
	for _, e := range registry.Entries() {
		for _, row := range []string{"| [`" + e.Name + "`](", "| `" + e.Name + "` | "} {
			if !strings.Contains(text, row) {
				t.Errorf("docs/tune/algorithms.md has no row that begins with %q", row)
			}
		}
		if e.Name == "gp" || len(e.Settings) == 0 { // gp has those of hebo
			continue
		}
		want := map[string][][]string{}
		for _, s := range e.Settings {
			title := "settings of " + e.Name
			if s.Experimental {
				title = "experimental " + title
			}
			want[title] = append(want[title], []string{"`" + s.Name + "`", fmt.Sprintf("`%v`", s.Default), accepted(s), s.Doc})
		}
		for title, rows := range want {
			if diff := cmp.Diff(rows, table(t, "docs/internals/optimiser.md", title+":")); diff != "" {
				t.Errorf("docs/internals/optimiser.md lists (+) other %s than there are (-):\n%s", title, diff)
			}
		}
	}
}

// TestAlgorithmsAreListed finds the lists of algorithms in the pages: paragraphs and rows of tables
// that name at least half of them. Each must name all, or all that learn from results if it
// names no other.
func TestAlgorithmsAreListed(t *testing.T) {
	var all, learning []string
	for _, e := range registry.Entries() {
		o, err := registry.New(e.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name)
		if _, blind := o.(optimizer.Blind); !blind {
			learning = append(learning, e.Name)
		}
	}
	lists := map[string]int{}
	for _, page := range documents(t) {
		if strings.HasPrefix(page, "research/") { // tables of what was measured
			continue
		}
		for _, part := range regexp.MustCompile(`\n(?:\n|[|-] )`).Split(readPage(t, page), -1) {
			var missing, named []string
			for _, name := range all {
				if strings.Contains(part, "`"+name+"`") {
					named = append(named, name)
				} else {
					missing = append(missing, name)
				}
			}
			if 2*len(named) < len(all) {
				continue
			}
			lists[page]++
			if len(missing) > 0 && !slices.Equal(named, learning) {
				t.Errorf("%s lists the algorithms without %q:\n%s", page, missing, part)
			}
		}
	}
	for page, least := range map[string]int{"docs/tune/study-file.md": 2, "docs/tune/early-stopping.md": 1, "CHANGELOG.md": 1} {
		if lists[page] < least {
			t.Errorf("%s has %d lists of the algorithms, want %d", page, lists[page], least)
		}
	}
	headings := anchors(t, "docs/internals/optimiser.md")
	for _, name := range learning {
		if name != "gp" && !headings[name] && !headings[name+"-and-gp"] {
			t.Errorf("docs/internals/optimiser.md has no section on %s", name)
		}
	}
}

// TestVariantsOfPapersAreListed holds that the commands of the papers' tables play each variant.
func TestVariantsOfPapersAreListed(t *testing.T) {
	for name, written := range map[string][2]string{"lgp": {"model", "model=%s}"}, "uhe": {"method", ",%s,"}} {
		setting, pattern := written[0], written[1]
		e, err := registry.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Settings {
			for _, choice := range s.Choices {
				if s.Name == setting && choice != s.Default && !strings.Contains(readPage(t, "research/Makefile"), fmt.Sprintf(pattern, choice)) {
					t.Errorf("research/Makefile does not play %s{%s=%s}", name, setting, choice)
				}
			}
		}
	}
}

// accepted is what a setting takes, as the table shows it.
func accepted(s setting.Setting) string {
	if len(s.Choices) > 0 {
		return "`" + strings.Join(s.Choices, "`, `") + "`"
	}
	return strings.TrimPrefix(strings.TrimPrefix(s.Accepted(), "an "), "a ")
}

// TestFieldsAreListed holds that every field of a study file is documented.
func TestFieldsAreListed(t *testing.T) {
	var schema any
	if err := json.Unmarshal(file.JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for name := range properties {
					fields[name] = true
				}
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(schema)
	if len(fields) < 30 {
		t.Fatalf("the schema has only the fields %q", slices.Sorted(maps.Keys(fields)))
	}
	text := readPage(t, "docs/tune/study-file.md")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		word := regexp.MustCompile("(?m)(?:`|`[a-z]+\\.|[{ ]|^)" + name + "(?:`|:)|spec\\." + name + `\b`)
		if !word.MatchString(text) {
			t.Errorf("docs/tune/study-file.md does not name the field %s", name)
		}
	}
}

// TestResultsAreListed holds the tables of the results' fields and columns against
// the code that writes them.
func TestResultsAreListed(t *testing.T) {
	listed := func(title string) []string {
		var names []string
		for _, row := range table(t, "docs/tune/run.md", title) {
			for _, m := range code.FindAllStringSubmatch(row[0], -1) {
				names = append(names, m[1])
			}
		}
		return names
	}
	var fields []string
	for f := range reflect.TypeFor[view.Study]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	if diff := cmp.Diff(fields, listed("fields of result.json")); diff != "" {
		t.Errorf("docs/tune/run.md lists (+) other fields than there are (-):\n%s", diff)
	}
	var out strings.Builder
	trials := view.List{{Metrics: map[string]float64{"NAME": 1}, Labels: map[string]string{"KEY": "a"}, Attributes: map[string]any{"KEY": 1.5},
		Note: "odd", Site: messaging.Site{Job: "a"}}}
	spec := study.Spec{
		Objective: study.Objective{Metric: "NAME"}, Limits: []study.Limit{{}}, Parameters: []study.Parameter{{Name: "NAME"}},
		Cost: &study.Cost{},
	}
	if err := export.Of(&spec, trials).CSV(&out); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(out.String(), "\n")
	if diff := cmp.Diff(strings.Split(head, ","), listed("columns of trials.csv")); diff != "" {
		t.Errorf("docs/tune/run.md lists (+) other columns than there are (-):\n%s", diff)
	}
}

// TestFoldersExist holds that the folders in the table of ARCHITECTURE.md are
// there, and that no folder of packages at the top is missing from it.
func TestFoldersExist(t *testing.T) {
	text := readPage(t, "docs/ARCHITECTURE.md")
	_, text, _ = strings.Cut(text, "## What is where")
	text, _, _ = strings.Cut(text, "Imports point one way")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9]+)*)`").FindAllStringSubmatch(text, -1) {
		if info, err := os.Stat(filepath.Join(root, m[1])); err == nil && info.IsDir() {
			named[strings.Split(m[1], "/")[0]] = true
		} else if strings.Contains(m[1], "/") {
			t.Errorf("docs/ARCHITECTURE.md names %s, which is no folder", m[1])
		}
	}
	for name := range used(t, `"github\.com/fantasia-hpo/fantasia/([a-z0-9]+)/?[a-z0-9/]*"`) {
		if !named[name] {
			t.Errorf("docs/ARCHITECTURE.md does not name the folder %s", name)
		}
	}
}
