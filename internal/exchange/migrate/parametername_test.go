package migrate

import (
	"encoding/json"
	"testing"

	"github.com/fantasia-hpo/fantasia/study/space"
)

// The Python client reads the same table (clients/python/tests/test_names.py).
func TestParameterName(t *testing.T) {
	var table []struct{ Name, Want string }
	if err := json.Unmarshal([]byte(source(t, "names.json")), &table); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, tt := range table {
		got := ParameterName(tt.Name)
		if got != tt.Want {
			t.Errorf("%q becomes %q, want %q", tt.Name, got, tt.Want)
		}
		if problem := space.NameProblem(got); problem != "" {
			t.Errorf("%q: %s", tt.Name, problem)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q both become %q", other, tt.Name, got)
		}
		seen[got] = tt.Name
	}
}
