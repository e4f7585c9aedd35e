package migrate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// studyAttributes returns the user attributes of a study as spec.attributes. Those that are no values of
// JSON or do not fit are left out, and a note names them.
func (s *optunaStudy) studyAttributes(r *Result) map[string]any {
	made := map[string]any{}
	var leftOut []string
	bytes := len("{}")
	for _, name := range slices.Sorted(maps.Keys(s.attributes)) {
		var plain map[string]any // with float64 for numbers, as others decode JSON
		text, err := json.Marshal(map[string]any{name: s.attributes[name]})
		if err == nil && len(text) <= study.MaxAttributes {
			err = json.Unmarshal(text, &plain)
		}
		if more := len(text) - len("{}") + min(len(made), len(",")); err != nil || bytes+more > study.MaxAttributes {
			leftOut = append(leftOut, name)
		} else if plain[name] != nil {
			made[name] = plain[name]
			bytes += more
		}
	}
	if len(leftOut) > 0 {
		names := quoted(leftOut[:min(len(leftOut), 5)])
		if len(leftOut) > len(names) {
			names = append(names, "…")
		}
		r.note("user attributes of the study left out: %d of %d (%s): want values of JSON that have at most %d bytes together",
			len(leftOut), len(s.attributes), strings.Join(names, ", "), study.MaxAttributes)
	}
	if len(made) == 0 {
		return nil
	}
	return made
}
