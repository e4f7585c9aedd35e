package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/base/usage"
	"github.com/fantasia-hpo/fantasia/study"
)

// TestDocuments runs what can be run without Python, and holds the flags and
// variables that are named against the programs.
func TestDocuments(t *testing.T) {
	path := programs(t)
	for _, document := range documents(t) {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			blocks, _ := split(t, document)
			newReader(t, path).follow(blocks, false)
		})
	}
	t.Run("flags", func(t *testing.T) { testFlags(t, newReader(t, path)) })
	t.Run("variables", func(t *testing.T) { testVariables(t, newReader(t, path)) })
}

var (
	code     = regexp.MustCompile("`([^`]+)`")
	flagName = regexp.MustCompile(`(?:^|[\s=\[(])--([a-z][a-z0-9_-]*)`)
	variable = regexp.MustCompile(`\bFANTASIA_[A-Z_]*[A-Z]\b`)
)

// foreign are flags of other programs that the documents name.
var foreign = []string{"user", "quota-backend-bytes", "signal", "enable-feature", "lr", "retry", "skip-crds", "for",
	"bump-revision", "mark-compacted", "auto-compaction-mode", "auto-compaction-retention",
	"cascade", "cask", "raw", "ignore-missing", "now", "disable-eviction", "measure", "account", "wrap", "value"}

// flags returns the names of our programs' flags.
func (r *reader) flags() map[string]bool {
	names := map[string]bool{"help": true}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		add := func(f *pflag.Flag) { names[f.Name] = true }
		c.Flags().VisitAll(add)
		c.PersistentFlags().VisitAll(add)
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(cli.New(cli.Options{Version: "test"}))
	walk(cli.New(cli.Options{Version: "test", Plugin: true}))
	for _, program := range []string{"coordinator", "worker", "worker sidecar", "kubeworker", "coordinator nats-config"} {
		help := r.run(&block{document: program, text: program + " --help"})
		_, list, _ := strings.Cut(help, "\nFlags:")
		for _, m := range flagName.FindAllStringSubmatch(list, -1) {
			names[m[1]] = true
		}
	}
	return names
}

// commands are the lines of a document's blocks that run our programs, without
// the commands that they hand to workers.
func commands(blocks []block) []string {
	var lines []string
	for _, b := range blocks {
		if b.language != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			for part := range strings.SplitSeq(line, "|") {
				part, _, _ = strings.Cut(strings.TrimSpace(part), " -- ")
				if program, _, _ := strings.Cut(part, " "); slices.Contains([]string{"fantasia", "coordinator", "worker", "kubeworker"}, program) {
					lines = append(lines, part)
				}
			}
		}
	}
	return lines
}

func testFlags(t *testing.T, r *reader) {
	known := r.flags()
	if len(known) < 25 {
		t.Fatalf("found only the flags %q", slices.Sorted(maps.Keys(known)))
	}
	for _, document := range documents(t) {
		blocks, prose := split(t, document)
		texts := commands(blocks)
		for _, m := range code.FindAllStringSubmatch(prose, -1) {
			text, _, _ := strings.Cut(m[1], " -- ")
			texts = append(texts, text)
		}
		for _, text := range texts {
			for _, m := range flagName.FindAllStringSubmatch(text, -1) {
				if !known[m[1]] && !slices.Contains(foreign, m[1]) {
					t.Errorf("%s names --%s, which no program has: %s", document, m[1], text)
				}
			}
		}
	}
}

// testVariables holds the list of a program's variables against a trial, and
// every other variable that is named against flags, streams and the Python client.
func testVariables(t *testing.T, r *reader) {
	given := r.trialEnvironment()
	table := table(t, "docs/tune/attach.md", "variables of a program")
	listed := map[string]bool{}
	for _, row := range table {
		for _, m := range code.FindAllStringSubmatch(row[0], -1) {
			listed[strings.ReplaceAll(m[1], "<NAME>", "NAME")] = true
		}
	}
	if !maps.Equal(given, listed) {
		t.Errorf("docs/tune/attach.md lists the variables\n%q, a trial has\n%q", slices.Sorted(maps.Keys(listed)),
			slices.Sorted(maps.Keys(given)))
	}
	for name := range r.flags() {
		listed[usage.Variable(name)] = true
	}
	for _, word := range study.JobWords() {
		listed[word] = true
	}
	for _, source := range []string{"messaging/natsbus/streams.go", "clients/python/src/fantasia_hpo/_server.py"} {
		for _, name := range regexp.MustCompile(`"(FANTASIA_[A-Z]+)"`).FindAllStringSubmatch(readPage(t, source), -1) {
			listed[name[1]] = true
		}
	}
	for _, document := range documents(t) {
		for _, name := range variable.FindAllString(readPage(t, document), -1) {
			if !listed[name] && !strings.HasPrefix(name, "FANTASIA_PARAM_") && name != "FANTASIA_PARAM" {
				t.Errorf("%s names %s, which nothing reads or sets", document, name)
			}
		}
	}
}
