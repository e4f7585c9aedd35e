package file_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fantasia-hpo/fantasia/study/file"
)

// TestElsewhere compares the notes with what kubectl's reader of YAML makes of a text, and has what
// https://yaml.org/type says of others.
func TestElsewhere(t *testing.T) {
	for word, want := range map[string]string{
		"y": "a boolean", "Y": "a boolean", "n": "a boolean", "No": "a boolean", "ON": "a boolean", "off": "a boolean", "yes": "a boolean",
		"12:30": "of base 60", "190:20:30": "of base 60", "2024-01-02": "a date", "0o7": "octal",
		"yep": "", "_1": "", "a_b": "", "tRuE": "", "true": "", "1": "", "0.5": "", "1e3": "", "0o8": "", "12:99": "", "~": "", `"y"`: "",
	} {
		notes := file.Elsewhere([]byte("spec:\n  parameters:\n    - name: " + word + "\n"))
		if got := strings.Join(notes, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) ||
			want != "" && !strings.HasPrefix(got, "line 3, column 13: "+word+" is ") {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
		text, err := yaml.YAMLToJSON([]byte("a: " + word))
		if err != nil {
			t.Fatal(err)
		}
		if kubectl := !strings.Contains(string(text), `"a":"`); kubectl != (want == "a boolean" || want == "octal" ||
			slices.Contains([]string{"true", "1", "0.5", "1e3", "~"}, word)) {
			t.Errorf("kubectl reads %s as %s, and the note says %q", word, text, want)
		}
	}
	for _, text := range []string{"spec: {when: {n: [1]}}", "spec: {values: [a, y]}", "spec: {command: [train, 12:30]}"} {
		if notes := file.Elsewhere([]byte(text)); len(notes) != 1 {
			t.Errorf("%s: %q, want one note", text, notes)
		}
	}
	if notes := file.Elsewhere([]byte(`{"spec": {"values": ["y", "0o7"]}}`)); len(notes) > 0 {
		t.Errorf("JSON: %q, want no note", notes)
	}
}
