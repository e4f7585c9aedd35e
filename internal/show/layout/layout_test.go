package layout_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

var (
	columns = []layout.Column{
		{Head: "NAME", Least: 6},
		{Head: "STATE"},
		{Head: "COST", Rank: 1},
		{Head: "NOTE", Rank: 2, Least: 8},
		{Head: "PATH", Least: 6, End: true},
	}
	rows = [][]string{
		{"one", "RUNNING", "0.5", "a note of several words", ".fantasia/one"},
		{"the-second", "FAILED", "-", "", ".fantasia/the-second.1"},
	}
)

func table(t interface{ Fatal(...any) }, width int, columns []layout.Column, rows [][]string) string {
	var b strings.Builder
	if err := layout.Table(&b, width, columns, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A table shortens its long cells first, then drops columns by their rank, and in the
// end shortens what has to stay.
func TestTable(t *testing.T) {
	for width, want := range map[int]string{
		0: `
NAME        STATE    COST  NOTE                     PATH
one         RUNNING  0.5   a note of several words  .fantasia/one
the-second  FAILED   -                              .fantasia/the-second.1
`,
		53: `
NAME        STATE    COST  NOTE          PATH
one         RUNNING  0.5   a note of s…  …antasia/one
the-second  FAILED   -                   …he-second.1
`,
		30: `
NAME    STATE    COST  PATH
one     RUNNING  0.5   …ia/one
the-s…  FAILED   -     …cond.1
`,
		27: `
NAME      STATE    PATH
one       RUNNING  …sia/one
the-sec…  FAILED   …econd.1
`,
		16: `
NAME  STA…  PATH
one   RUN…  …one
the…  FAI…  …d.1
`,
	} {
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), table(t, width, columns, rows)); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
}

// A cell of wide characters, which loses its beginning, is cut before or after one of them.
func TestTableOfWideCharacters(t *testing.T) {
	columns := []layout.Column{{Head: "A"}, {Head: "A"}, {Head: "A", End: true}}
	rows := [][]string{{"aa", "a a", "a世 a aa世世"}}
	for width := 10; width <= 24; width++ {
		for line := range strings.SplitSeq(table(t, width, columns, rows), "\n") {
			if got := ansi.StringWidth(line); got > max(width, 13) { // at their narrowest, the columns need 13
				t.Errorf("%q has %d columns, the limit is %d", line, got, width)
			}
		}
	}
	want := "A   A    A\naa  a a  … a aa世世\n"
	if diff := cmp.Diff(want, table(t, 20, columns, rows)); diff != "" {
		t.Errorf("20 columns (-want +got):\n%s", diff)
	}
}

// No table is wider than its width, unless every column is at its narrowest. With any
// width, every cell is shown whole, in its column.
func TestTablesFit(t *testing.T) {
	cell := rapid.StringMatching(`[a-zé世 ]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layout.Column {
			return layout.Column{
				Head: rapid.StringMatching(`[A-Z]{1,8}`).Draw(t, "head"), Rank: rapid.IntRange(0, 3).Draw(t, "rank"),
				Least: rapid.IntRange(0, 9).Draw(t, "least"), End: rapid.Bool().Draw(t, "end"),
			}
		}), 1, 6).Draw(t, "columns")
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, len(columns), len(columns)), 0, 4).Draw(t, "rows")
		width := rapid.IntRange(1, 80).Draw(t, "width")
		widest := 0
		for line := range strings.SplitSeq(table(t, width, columns, rows), "\n") {
			widest = max(widest, ansi.StringWidth(line))
		}
		if stay := 6 * len(columns); widest > max(width, stay) {
			t.Fatalf("a line has %d columns, the limit is %d", widest, width)
		}
		for i, line := range strings.Split(strings.TrimSuffix(table(t, 0, columns, rows), "\n"), "\n")[1:] {
			if got, want := strings.Join(strings.Fields(line), " "), strings.Join(strings.Fields(strings.Join(rows[i], " ")), " "); got != want {
				t.Fatalf("row %d is %q, want %q", i, got, want)
			}
		}
	})
}

// Fields break between words, never within one, and keep the lines of a log.
func TestFields(t *testing.T) {
	fields := []layout.Field{
		{Name: "Study", Value: "digits: minimize error over 4 parameters"},
		{Name: "Empty"},
		{Name: "Path", Value: "/a/path/that/is/wider/than/the/room"},
		{Name: "Command", Words: []string{"python", "train.py", "'--name=two words'", "--epochs", "20"}},
		{Name: "Log", Value: "epoch 1 of twenty epochs\n  error", Exact: true},
	}
	for width, want := range map[int]string{
		0: `
Study:    digits: minimize error over 4 parameters
Path:     /a/path/that/is/wider/than/the/room
Command:  python train.py '--name=two words' --epochs 20
Log:      epoch 1 of twenty epochs
            error
`,
		32: `
Study:    digits: minimize error
          over 4 parameters
Path:     /a/path/that/is/wider/than/the/room
Command:  python train.py \
          '--name=two words' \
          --epochs 20
Log:      epoch 1 of twenty epochs
            error
`,
	} {
		var b strings.Builder
		if err := layout.Fields(&b, width, fields); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), b.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
}

// A shell reads a command that was broken as the same words.
func TestShellReadsABrokenCommand(t *testing.T) {
	var b strings.Builder
	words := []string{"printf", "'%s,'", "one", "'two words'", "three"}
	if err := layout.Fields(&b, 24, []layout.Field{{Name: "Command", Words: words}}); err != nil {
		t.Fatal(err)
	}
	script := strings.TrimPrefix(b.String(), "Command:")
	if strings.Count(script, "\n") < 3 {
		t.Fatalf("the command was not broken: %q", script)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script).Output()
	if want := "one,two words,three,"; err != nil || string(out) != want {
		t.Errorf("the shell printed %q, want %q: %v", out, want, err)
	}
}
