//go:build python

package migrate

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// ran runs a script with the interpreter of the tests.
func ran(t testing.TB, script string, args ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), python, append([]string{"-c", script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}

// writtenBy returns the path of a storage of SQLite that a script makes, whose first argument is its path.
func writtenBy(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	made, path := filepath.Join(dir, "made.db"), filepath.Join(dir, "a b%20?#é.db") // a path is no URL
	ran(t, script, made)
	if err := os.Rename(made, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// changed returns the path of a copy of testdata/optuna.db on which statements were executed.
func changed(t *testing.T, statements string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "changed.db")
	if err := os.WriteFile(path, []byte(source(t, "optuna.db")), 0o600); err != nil {
		t.Fatal(err)
	}
	ran(t, "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.executescript(sys.argv[2])\ndb.close()", path, statements)
	return path
}

// left returns the names and the contents of the files beside a path.
func left(t *testing.T, path string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(content)
	}
	return found
}

// What Optuna does not read is refused with the reason, and nothing is changed or left behind.
func TestOptunaBadDatabases(t *testing.T) {
	whole := source(t, "optuna.db")
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	middle := len(whole) / 2
	for name, tt := range map[string]struct{ path, want string }{
		"cut":           {write("cut.db", whole[:middle]), "the file is damaged: "},
		"overwritten":   {write("overwritten.db", whole[:middle]+strings.Repeat("\xff", 4096)+whole[middle+4096:]), "the file is damaged: "},
		"only a header": {write("header.db", whole[:100]), "the file is damaged: "},
		"an endless view": {changed(t, "DROP TABLE version_info; CREATE VIEW version_info AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "+
			"SELECT i + 1 FROM n) SELECT i FROM n;"), "version_info is not a plain table"},
		"computed":  {changed(t, "ALTER TABLE trials ADD COLUMN more AS (hex(zeroblob(100000000)));"), "trials is not a plain table"},
		"another's": {changed(t, "DROP TABLE studies; DROP TABLE version_info;"), "not a storage of Optuna: no such table: version_info"},
		"without tables": {writtenBy(t, "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.execute('PRAGMA user_version = "+
			"1')\ndb.commit()\ndb.close()"), "not a storage of Optuna: no such table: version_info"},
		"without version": {changed(t, "DELETE FROM version_info;"), "attempt to write a readonly database"},
		"no JSON":         {changed(t, `UPDATE trial_params SET distribution_json = '{';`), "cannot read it: Expecting"},
		"earlier":         {changed(t, "UPDATE alembic_version SET version_num = 'v2.6.0.a';"), "optuna storage upgrade"},
		"later":           {changed(t, "UPDATE alembic_version SET version_num = 'v99.0.0.a';"), "pip install -U optuna"},
	} {
		before := left(t, tt.path)
		_, err := Optuna(t.Context(), tt.path, OptunaOptions{Python: python, Study: "My Study"})
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
		if diff := cmp.Diff(before, left(t, tt.path)); diff != "" {
			t.Errorf("%s: the import changed files:\n%.1000s", name, diff)
		}
	}
}

// A storage in use, with a write-ahead log, is read as it is now.
func TestOptunaWriteAheadLog(t *testing.T) {
	path := changed(t, "PRAGMA journal_mode = WAL;")
	writer := exec.CommandContext(t.Context(), python, "-c", `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE studies SET study_name = 'renamed' WHERE study_name = 'My Study'")
db.commit()
print("written", flush=True)
sys.stdin.read()
`, path)
	stdin, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := writer.StdoutPipe()
	if err == nil {
		err = writer.Start()
	}
	if err == nil {
		_, err = stdout.Read(make([]byte, 100))
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := optunaStudyOf(t, path, "renamed", 0); len(s.Spec.Parameters) != 6 {
		t.Errorf("%+v", s.Spec.Parameters)
	}
	if err := errors.Join(stdin.Close(), writer.Wait()); err != nil {
		t.Error(err)
	}
}

// Which interpreter and which packages are needed is said, and no password.
func TestOptunaNeedsPython(t *testing.T) {
	bare := t.TempDir()
	if output, err := exec.CommandContext(t.Context(), python, "-m", "venv", "--without-pip", bare).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	bare = filepath.Join(bare, "bin", "python")
	for _, tt := range []struct{ source, python, want string }{
		{"testdata/optuna.db", bare, bare + " -m pip install optuna"},
		{"mysql+mysqldb://me:s3cret@127.0.0.1:1/optuna", python, "want the package mysqlclient"},
		{"mysql://me:s3cret@127.0.0.1:1/optuna", python, "Connection refused"},
		{"postgres://me:s3cret@127.0.0.1:1/optuna", python, "refused"},
		{"mariadb://me:s3cret@127.0.0.1:1/optuna", python, "Connection refused"},
		{"postgresql://me:s3cret@127.0.0.1:1/optuna?sslmode=s", python, "sslmode"},
		{"testdata/optuna.db", "/bin/false", "/bin/false could not read the storage: exit status 1"},
	} {
		_, err := Optuna(t.Context(), tt.source, OptunaOptions{Python: tt.python})
		if err == nil || errors.Is(err, ErrSource) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s by %s: error %v, want %q", tt.source, tt.python, err, tt.want)
		}
	}
	if _, err := Optuna(t.Context(), "nothing://me:s3cret@db/optuna", OptunaOptions{Python: python}); !errors.Is(err, ErrSource) ||
		!strings.Contains(err.Error(), "nothing") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("an unknown database: %v", err)
	}
	// A file of this name in the present directory is not imported in place of Optuna.
	t.Chdir(t.TempDir())
	for _, name := range []string{"optuna.py", "json.py", "sqlalchemy.py"} {
		if err := os.WriteFile(name, []byte("raise SystemExit('imported from here')\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := writtenBy(t, "import sys\nsys.path.remove('')\nimport optuna\noptuna.create_study(storage=f'sqlite:///{sys.argv[1]}', "+
		"study_name='s')")
	if _, err := Optuna(t.Context(), path, OptunaOptions{Python: python}); err == nil || !strings.Contains(err.Error(), "no trial of study") {
		t.Errorf("beside an optuna.py: %v", err)
	}
}

// An interpreter that waits for a server ends with its context.
func TestOptunaCancelled(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			cancel()
			_, err = io.Copy(io.Discard, conn) // until the process has ended
			err = errors.Join(err, conn.Close())
		}
		ended <- err
	}()
	u := url.URL{Scheme: "postgresql", User: url.User("me"), Host: listener.Addr().String(), Path: "/optuna"}
	if _, err := Optuna(ctx, u.String(), OptunaOptions{Python: python}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
		_ = listener.Close() // so that nothing waits for a connection
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The choice of a trial is that which the database has, though 1, 1.0 and True are the same to Python.
func TestOptunaChoicesOfDatabases(t *testing.T) {
	path := writtenBy(t, `
import sqlite3, sys, warnings
import optuna
warnings.simplefilter("ignore")
study = optuna.create_study(storage=f"sqlite:///{sys.argv[1]}", study_name="s")
choices = optuna.distributions.CategoricalDistribution([None, "None", 1, 1.0, "1", True, "true", 9007199254740993, float("nan")])
for i in range(len(choices.choices)):
    study.add_trial(optuna.create_trial(params={"k": None}, distributions={"k": choices}, value=i))
with sqlite3.connect(sys.argv[1]) as db:
    db.execute("UPDATE trial_params SET param_value = (SELECT number FROM trials t WHERE t.trial_id = trial_params.trial_id)")
`)
	s, _ := optunaStudyOf(t, path, "s", 20)
	want := []any{"None", `"None"`, int64(1), "1.0", `"1"`, true, `"true"`, "9007199254740993", "NaN"}
	var got []any
	for _, point := range s.Spec.Initial {
		got = append(got, point["k"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
}

// Attributes that a study cannot have are left out, and odd values are as in a journal.
func TestOptunaOddDatabases(t *testing.T) {
	path := writtenBy(t, `
import sqlite3, sys, warnings
import optuna
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(storage=f"sqlite:///{sys.argv[1]}", study_name="s", direction="maximize")
study.set_user_attr("long", "x" * (5 << 20))
study.set_user_attr("data", "digits")
floats = {"z": optuna.distributions.FloatDistribution(0, 1), "a": optuna.distributions.IntDistribution(1, 9)}
attributes = {"n": 2, "f": 0.5, "nan": float("nan"), "large": 10**400, "flag": True, "text": "1", "list": [1]}
system = {"constraints": [0.5, -1], "constraints:" + "n" * 9: 1.0, "grid_id": 5}
for i, state in enumerate([1, 1, 2, 3, 0, 4, 1]):
    value = [0.5, float("-inf"), None, None, None, None, 0.25][i]
    study.add_trial(optuna.trial.create_trial(
        params={"z": i / 10, "a": i + 1}, distributions=floats, value=value, state=optuna.trial.TrialState(state),
        user_attrs=attributes, system_attrs=system, intermediate_values={1: float("nan")}))
with sqlite3.connect(sys.argv[1]) as db:
    db.execute("UPDATE trials SET number = number + 10 WHERE number = 6")
`)
	s, notes := optunaStudyOf(t, path, "", 5)
	if diff := cmp.Diff(map[string]any{"data": "digits"}, s.Spec.Attributes); diff != "" ||
		!strings.Contains(notes, `left out: 1 of 2 ("long")`) {
		t.Errorf("attributes (-want +got):\n%s\nnotes:\n%s", diff, notes)
	}
	if len(s.Spec.Parameters) != 2 || s.Spec.Parameters[0].Name != "z" || s.Spec.Objective.Direction != study.Maximize {
		t.Errorf("%+v", s.Spec)
	}
	trials, skipped, err := OptunaTrials(t.Context(), path, OptunaOptions{Python: python}, &s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]float64{"user_attrs_n": 2, "user_attrs_f": 0.5, "constraints_0": 0.5, "constraints_1": -1,
		"constraints_nnnnnnnnn": 1}
	want := []Evaluated{
		{Place: "trial 0", Point: study.Point{"z": 0.0, "a": int64(1)}, Values: study.Values{0.5}, Metrics: metrics},
		{Place: "trial 16", Point: study.Point{"z": 0.6, "a": int64(7)}, Values: study.Values{0.25}, Metrics: metrics},
	}
	if diff := cmp.Diff(want, trials); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	const state = ": only completed trials have a value"
	if diff := cmp.Diff([]Skipped{
		{"trial 1", "its value is infinite or NaN: want a finite number"}, {"trial 2", "its state is PRUNED" + state},
		{"trial 3", "its state is FAIL" + state},
		{"trial 4", "its state is RUNNING" + state}, {"trial 5", "its state is WAITING" + state},
	}, skipped); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}
