package check

import "testing"

// A key y of a resource reaches the coordinators as true: kubectl reads YAML 1.1.
func TestBooleanNames(t *testing.T) {
	for word, want := range map[string]string{
		"true":  ` (did you mean "y"? A tool has read y as a boolean: put "y" in quotes)`,
		"false": ` (did you mean "off"? A tool has read off as a boolean: put "off" in quotes)`,
		"ofg":   ` (did you mean "off"?)`,
	} {
		if got := DidYouMean(word, []string{"lr", "y", "off"}); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	if got := DidYouMean("true", []string{"learning_rate"}); got != "" {
		t.Errorf("without such a parameter: %q", got)
	}
}
