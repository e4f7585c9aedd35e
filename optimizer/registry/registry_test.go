package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer/optimizertest"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

func TestNames(t *testing.T) {
	if diff := cmp.Diff([]string{"hebo", "gp", "random", "sobol"}, Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if Names()[0] != Default {
		t.Errorf("the default %s is not the first", Default)
	}
}

// Every entry can be made with its defaults written out, works, and is
// documented.
func TestEntries(t *testing.T) {
	for _, e := range Entries() {
		settings := map[string]any{}
		for _, s := range e.Settings {
			settings[s.Name] = s.Default
			if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") {
				t.Errorf("%s: setting %s is documented as %q, want a sentence", e.Name, s.Name, s.Doc)
			}
		}
		if !strings.HasSuffix(e.Description, ".") {
			t.Errorf("%s is described as %q, want a sentence", e.Name, e.Description)
		}
		o, err := New(e.Name, settings)
		if err != nil {
			t.Errorf("%s with its defaults: %v", e.Name, err)
			continue
		}
		optimizertest.NewSession(t, o, optimizertest.Mixed(t), 1).Ask(2)
	}
}

func TestEmptyNameIsTheDefault(t *testing.T) {
	// draws is no setting of random and sobol.
	if err := Check("", map[string]any{"draws": 8}); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	err := Check("gpp", nil)
	if _, ok := errors.AsType[*UnknownError](err); !ok || err.Error() != `algorithm "gpp" is unknown: want one of hebo, gp, random, sobol` {
		t.Errorf("an unknown name: %v", err)
	}
	err = Check("random", map[string]any{"draws": 8})
	want := `algorithm random: setting "draws": 8 is not accepted: there are no settings`
	if _, ok := errors.AsType[*setting.Error](err); !ok || err.Error() != want {
		t.Errorf("a setting of another algorithm: %v, want %s", err, want)
	}
}
