package cli

import (
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// A whole number stays what is written, also above 2^53, from which on not each is a float64.
func TestEditValues(t *testing.T) {
	for text, want := range map[string][]any{
		"p=1,9007199254740993, 3": {int64(1), int64(9007199254740993), int64(3)},
		"p=-9223372036854775808,1e3,2.0,true,adam,10000000000000000000": {int64(-1 << 63), 1e3, 2.0, true, "adam", 1e19},
	} {
		spec := &study.Spec{Parameters: []study.Parameter{{Name: "p", Type: study.Categorical, Values: []any{int64(1), "adam"}}}}
		if err := editValues(spec, text); err != nil || !slices.Equal(spec.Parameters[0].Values, want) {
			t.Errorf("%s: %#v (%v), want %#v", text, spec.Parameters[0].Values, err, want)
		}
	}
	spec := &study.Spec{Parameters: []study.Parameter{{Name: "p", Type: study.Categorical, Values: []any{int64(1), int64(2)}}}}
	if err := editValues(spec, "p=1,null"); err == nil || err.Error() != "null is not a string, a number or a boolean" {
		t.Errorf("null: %v", err)
	}
}
