package migrate

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"math"
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

// readStudyAttributes reads the user attributes of a study from a database. One that is not JSON, or is
// longer than all may be, is NaN, which is no value of JSON.
func readStudyAttributes(ctx context.Context, s *storage, id int64) (map[string]any, error) {
	rows, err := queried(ctx, s, func(r *sql.Rows, a *attributeRow) error { return r.Scan(&a.name, &a.value) },
		`SELECT a.key, CASE WHEN length(a.value_json) <= ? THEN a.value_json ELSE '' END FROM study_user_attributes a
		WHERE a.study_id = ?`, study.MaxAttributes, id)
	if err != nil {
		return nil, err
	}
	attributes := make(map[string]any, len(rows))
	for _, a := range rows {
		var value any
		if err := unmarshalPython([]byte(a.value), &value); err != nil {
			value = math.NaN()
		}
		attributes[a.name] = value
	}
	return attributes, nil
}
