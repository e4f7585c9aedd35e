package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// release is a time with a day of its own in every zone.
var release = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

// written returns the files below a directory that write has filled.
func written(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	if err := write(dir, "v1.2.3", release); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// plain is a page's text without the escapes of roff and without its line breaks.
func plain(page []byte) string {
	text := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fP`, "", `\fR`, "", `\fI`, "", `\&`, "").Replace(string(page))
	return strings.Join(strings.Fields(text), " ")
}

func visit(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			visit(child, f)
		}
	}
}

// Every command has a page that names it, says what it does and has all of its flags, and
// the page of its parent refers to it.
func TestEveryCommandHasItsPage(t *testing.T) {
	files, pages := written(t), map[string]bool{}
	for _, root := range programs("v1.2.3") {
		visit(root, func(c *cobra.Command) {
			name := strings.ReplaceAll(c.CommandPath(), " ", "-")
			page := plain(files["man1/"+name+".1"])
			pages["man1/"+name+".1"] = true
			if !strings.Contains(page, name+" - "+c.Short) {
				t.Errorf("the page of %s does not say %q", name, c.Short)
			}
			if !strings.Contains(page, `"Mar 2026" "Fantasia v1.2.3"`) {
				t.Errorf("the page of %s has another date or version:\n%.200s", name, page)
			}
			c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && !strings.Contains(page, "--"+f.Name) {
					t.Errorf("the page of %s has no --%s", name, f.Name)
				}
			})
			if c.HasParent() {
				parent := strings.ReplaceAll(c.Parent().CommandPath(), " ", "-")
				if !strings.Contains(plain(files["man1/"+parent+".1"]), name+"(1)") {
					t.Errorf("the page of %s does not refer to %s", parent, name)
				}
			}
		})
	}
	if len(pages) < 30 {
		t.Errorf("%d commands were found; want all of the programs'", len(pages))
	}
	for name := range files {
		if strings.HasPrefix(name, "man1/") && !pages[name] {
			t.Errorf("%s is of no command", name)
		}
	}
}

// Nothing of the machine that builds is in the pages: its name, or its folders.
func TestPagesAreTheSameEverywhere(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	first := written(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("FANTASIA_SERVER", "http://elsewhere:8080")
	second := written(t)
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs in another environment", name)
		}
		if strings.HasPrefix(name, "man1/") && (bytes.Contains(content, []byte(`="`+here)) || bytes.Contains(content, []byte(home+"/"))) {
			t.Errorf("%s names this machine, %s, or its folder %s", name, here, home)
		}
	}
}

// Bash loads the completions, and asks the program for what follows.
func TestBashTakesTheCompletions(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, "v1.2.3", release); err != nil {
		t.Fatal(err)
	}
	for _, root := range programs("v1.2.3")[:4] {
		out, err := exec.CommandContext(t.Context(), "bash", "-c", `source "$1" && complete -p "$2"`, "bash",
			filepath.Join(dir, "completions", "bash", root.Name()), root.Name()).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "-F __start_"+root.Name()) {
			t.Errorf("bash with the completions of %s: %s (%v)", root.Name(), out, err)
		}
		for _, file := range []string{"zsh/_" + root.Name(), "fish/" + root.Name() + ".fish"} {
			if content, err := os.ReadFile(filepath.Join(dir, "completions", file)); err != nil ||
				!strings.Contains(string(content), root.Name()+" ") && !strings.Contains(string(content), "compdef _"+root.Name()) {
				t.Errorf("%s completes nothing of %s (%v)", file, root.Name(), err)
			}
		}
	}
}

func TestWrongDate(t *testing.T) {
	if err := run(nil, "yesterday"); err == nil || !strings.Contains(err.Error(), `SOURCE_DATE_EPOCH is "yesterday"`) {
		t.Errorf("a wrong date: %v, want an error that names it", err)
	}
}
