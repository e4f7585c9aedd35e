package migrate

import (
	"database/sql"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study/file"
)

// smallStorage makes a storage of SQLite with the tables that an import reads, and two trials.
func smallStorage(t testing.TB, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "optuna.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range append([]string{
		"PRAGMA page_size = 512",
		"CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR(512))",
		"CREATE TABLE study_directions (study_id INTEGER, direction VARCHAR(8), objective INTEGER)",
		"CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, number INTEGER, study_id INTEGER, state VARCHAR(8))",
		"CREATE TABLE trial_values (trial_id INTEGER, objective INTEGER, value FLOAT)",
		"CREATE TABLE trial_params (param_id INTEGER PRIMARY KEY, trial_id INTEGER, param_name VARCHAR(512), param_value FLOAT, distribution_json TEXT)",
		"CREATE TABLE trial_user_attributes (trial_user_attribute_id INTEGER PRIMARY KEY, trial_id INTEGER, key VARCHAR(512), value_json TEXT)",
		"CREATE TABLE trial_system_attributes (trial_system_attribute_id INTEGER PRIMARY KEY, trial_id INTEGER, key VARCHAR(512), value_json TEXT)",
		"CREATE TABLE study_user_attributes (study_user_attribute_id INTEGER PRIMARY KEY, study_id INTEGER, key VARCHAR(512), value_json TEXT)",
		"INSERT INTO studies VALUES (1, 's')",
		"INSERT INTO study_directions VALUES (1, 'MINIMIZE', 0)",
		"INSERT INTO trials VALUES (1, 0, 1, 'COMPLETE'), (2, 1, 1, 'FAIL')",
		"INSERT INTO trial_values VALUES (1, 0, 0.5)",
		`INSERT INTO trial_params VALUES (1, 1, 'x', 0.5, '{"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "log": false, "step": null}}'),
			(2, 2, 'x', 0.25, '{"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "log": false, "step": null}}')`,
		`INSERT INTO trial_user_attributes VALUES (1, 1, 'seconds', '1.5'), (2, 1, 'host', '"a"'), (3, 1, 'bad', 'NaN'), (4, 1, 'flag', 'true')`,
		`INSERT INTO trial_system_attributes VALUES (1, 1, 'constraints', '[0.5, -1]'), (2, 1, 'constraints:size', 'NaN')`,
		`INSERT INTO study_user_attributes VALUES (1, 1, 'data', '"digits"'), (2, 1, 'sizes', '[64, {"last": NaN}]')`,
	}, more...) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file that is made to grow when it is read is refused before that.
func TestOptunaHostileStorages(t *testing.T) {
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
	for name, tt := range map[string]struct {
		more []string
		want string
	}{
		"an endless view":   {[]string{"DROP TABLE studies", "CREATE VIEW studies AS " + endless + " SELECT i AS study_id, i AS study_name FROM n"}, "studies is not a plain table"},
		"a computed column": {[]string{"DROP TABLE trial_params", "CREATE TABLE trial_params (param_id INTEGER, trial_id INTEGER, param_name TEXT, param_value FLOAT, distribution_json AS (hex(zeroblob(100000000))))"}, "trial_params is not a plain table"},
	} {
		if _, err := Optuna(t.Context(), smallStorage(t, tt.more...), OptunaOptions{}); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}

	// An inner page that names one leaf many times, so that few pages are very many rows.
	path := smallStorage(t, "INSERT INTO trials SELECT i + 2, i, 1, 'FAIL' FROM ("+endless+" SELECT i FROM n LIMIT 2000)")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const size, inner = 512, 5
	changed := false
	for at := 0; at < len(text); at += size {
		page := text[at : at+size]
		if page[0] != inner || page[3] != 0 && page[4] < 3 {
			continue
		}
		first := int(page[12])<<8 | int(page[13])
		for cell := 1; cell < int(page[4]); cell++ {
			pointer := int(page[12+2*cell])<<8 | int(page[13+2*cell])
			copy(page[pointer:pointer+4], page[first:first+4])
			changed = true
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if _, err := Optuna(t.Context(), path, OptunaOptions{}); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "the file is damaged") {
		t.Errorf("a page in many places: error %v", err)
	}
}

// fuzzStorage holds for each file: it is refused as a source, or becomes a study that can be
// read and trials with finite values, and it takes memory in proportion to the file.
func fuzzStorage(t *testing.T, path string, content []byte) {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := Optuna(t.Context(), path, OptunaOptions{Initial: 2})
	if err != nil {
		if !errors.Is(err, ErrSource) {
			t.Fatalf("not an error of the source: %v", err)
		}
	} else {
		s, err := file.Parse(r.Study)
		if err != nil {
			t.Fatal(err)
		}
		trials, _, err := OptunaTrials(t.Context(), path, "", &s.Spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials {
			if math.IsNaN(trial.Values.First()) || math.IsInf(trial.Values.First(), 0) {
				t.Fatalf("%+v", trial)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if used, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<20+1000*len(content)); used > most {
		t.Fatalf("%d bytes were allocated for a file of %d bytes, want at most %d", used, len(content), most)
	}
}

func FuzzOptunaSQLite(f *testing.F) {
	for _, path := range []string{smallStorage(f), smallStorage(f, "INSERT INTO trial_values VALUES (2, 0, NULL)", "UPDATE trials SET state = 'COMPLETE'")} {
		_, imported := Optuna(f.Context(), path, OptunaOptions{})
		content, err := os.ReadFile(path)
		if err = errors.Join(imported, err); err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	path := filepath.Join(f.TempDir(), "optuna.db")
	f.Fuzz(func(t *testing.T, content []byte) { fuzzStorage(t, path, content) })
}

func FuzzOptunaJournal(f *testing.F) {
	lines := strings.SplitAfter(source(f, "ordinary.log"), "\n")
	f.Add([]byte(strings.Join(lines[:60], "")))
	f.Add([]byte(lines[0] + addedWhole("1", "k", `{"name": "CategoricalDistribution", "attributes": {"choices": [null, 1, "1", NaN, [2]]}}`, "3") + "\n" +
		`{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {"sizes": [64, NaN]}}` + "\n"))
	path := filepath.Join(f.TempDir(), "journal.log")
	f.Fuzz(func(t *testing.T, content []byte) { fuzzStorage(t, path, content) })
}
