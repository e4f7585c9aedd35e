package setting

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func settings() Set {
	return Set{
		{Name: "draws", Doc: "How many.", Default: 16, Min: 1, Max: 64},
		{Name: "noise", Doc: "How much.", Default: 0.5, Min: 0, Max: 1},
		{Name: "kind", Doc: "Which.", Default: "a", Choices: []string{"a", "b"}},
		{Name: "fast", Doc: "Whether.", Default: false},
	}
}

func TestParseFillsDefaults(t *testing.T) {
	v, err := settings().Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.Int("draws") != 16 || v.Float("noise") != 0.5 || v.String("kind") != "a" || v.Bool("fast") {
		t.Errorf("defaults are not those of the settings: %v", v)
	}
}

func TestParseReadsWhatDecodersProduce(t *testing.T) {
	for _, draws := range []any{3, int64(3), uint64(3), 3.0} {
		v, err := settings().Parse(map[string]any{"draws": draws, "noise": 1, "kind": "b", "fast": true})
		if err != nil {
			t.Fatalf("%T: %v", draws, err)
		}
		if v.Int("draws") != 3 || v.Float("noise") != 1 || v.String("kind") != "b" || !v.Bool("fast") {
			t.Errorf("%T: read %v", draws, v)
		}
	}
}

// TestParseReadsYesAndNoOfYAML1_1 takes the booleans that a decoder of YAML 1.1
// makes of the words (https://yaml.org/type/bool.html).
func TestParseReadsYesAndNoOfYAML1_1(t *testing.T) {
	set := Set{
		{Name: "noisy", Default: "auto", Choices: []string{"auto", "yes", "no"}}, {Name: "kind", Default: "a", Choices: []string{"a", "b"}},
	}
	for value, want := range map[bool]string{true: "yes", false: "no"} {
		if v, err := set.Parse(map[string]any{"noisy": value}); err != nil || v.String("noisy") != want {
			t.Errorf("%t: got %v, %v, want %s", value, v, err, want)
		}
		if _, err := set.Parse(map[string]any{"kind": value}); err == nil {
			t.Errorf("a setting without these words accepts %t", value)
		}
	}
}

func TestParseNamesSettingValueAndWhatIsAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		raw  map[string]any
		want string
	}{
		"too small":   {map[string]any{"draws": 0}, `setting "draws": 0 is not accepted; want an integer from 1 to 64`},
		"fraction":    {map[string]any{"draws": 1.5}, `setting "draws": 1.5 is not accepted; want an integer from 1 to 64`},
		"not finite":  {map[string]any{"noise": math.NaN()}, `setting "noise": NaN is not accepted; want a number from 0 to 1`},
		"wrong type":  {map[string]any{"fast": "yes"}, `setting "fast": yes is not accepted; want true or false`},
		"wrong value": {map[string]any{"kind": "c"}, `setting "kind": c is not accepted; want one of a, b`},
		"unknown":     {map[string]any{"drawz": 4}, `unknown setting "drawz": the settings are draws, noise, kind, fast`},
	} {
		_, err := settings().Parse(c.raw)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s: %T is not an *Error", name, err)
		}
	}
	_, err := Set{}.Parse(map[string]any{"draws": 4})
	if err == nil || !strings.Contains(err.Error(), "this algorithm has no settings") {
		t.Errorf("a set without settings: %v", err)
	}
}

func TestParseReportsEveryProblemAtOnce(t *testing.T) {
	_, err := settings().Parse(map[string]any{"noise": 2.0, "draws": -1, "x": nil})
	want := "setting \"draws\": -1 is not accepted; want an integer from 1 to 64\n" +
		"setting \"noise\": 2 is not accepted; want a number from 0 to 1\n" +
		"unknown setting \"x\": the settings are draws, noise, kind, fast"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
