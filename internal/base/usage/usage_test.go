package usage_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/internal/base/usage"
	"github.com/spf13/cobra"
)

// command is a root with a subcommand that has the flags.
func command() *cobra.Command {
	root := &cobra.Command{Use: "root", SilenceUsage: true, SilenceErrors: true}
	sub := &cobra.Command{Use: "sub", RunE: func(*cobra.Command, []string) error { return nil }}
	sub.Flags().Int("workers", 1, strings.Repeat("many words ", 20))
	sub.Flags().Duration("wait", 0, "how long")
	sub.Flags().StringToString("labels", nil, "labels")
	root.PersistentFlags().String("server", "", strings.Repeat("other words ", 20))
	root.AddCommand(sub)
	usage.Setup(root)
	return root
}

func TestHelpIsWrapped(t *testing.T) {
	root := command()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"sub", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > usage.Columns {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	for _, word := range []string{"many words", "other words"} {
		if n := strings.Count(out.String(), strings.Fields(word)[0]); n != 20 {
			t.Errorf("%q occurs %d times, want 20:\n%s", word, n, &out)
		}
	}
}

// A program's exit code tells of an error, which follows the program's name once.
func TestMainTellsOfErrors(t *testing.T) {
	for text, want := range map[string]string{"": "", "root: no pool": "root: no pool\n", "other: no pool": "root: other: no pool\n"} {
		root := &cobra.Command{Use: "root --flag", SilenceUsage: true, SilenceErrors: true, RunE: func(*cobra.Command, []string) error {
			if text == "" {
				return nil
			}
			return errors.New(text)
		}}
		var stderr bytes.Buffer
		code := usage.Main(t.Context(), root, nil, &stderr, "root: ")
		if stderr.String() != want || (code == 0) != (want == "") {
			t.Errorf("%q: exit code %d, %q; want %q", text, code, &stderr, want)
		}
	}
}

func TestInvalidValues(t *testing.T) {
	for args, want := range map[string]string{
		"--workers=x":    `--workers is "x"; want a whole number`,
		"--wait=10":      `--wait is "10"; want a duration such as 90s, 10m or 1h30m`,
		"--labels=plain": `invalid argument "plain" for "--labels" flag: plain must be formatted as key=value`,
		"--nothing":      "unknown flag: --nothing",
	} {
		root := command()
		root.SetOut(io.Discard)
		root.SetArgs([]string{"sub", args})
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
