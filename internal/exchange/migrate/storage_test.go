package migrate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// No form of a URL shows its password, also not one that url.Parse refuses.
func TestRedacted(t *testing.T) {
	for source, want := range map[string]string{
		"optuna.db":                                  "optuna.db",
		"sqlite:///old/optuna.db":                    "sqlite:///old/optuna.db",
		"mysql://me@db/optuna":                       "mysql://me@db/optuna",
		"mysql+pymysql://me:s3cret@db:3306/optuna":   "mysql+pymysql://me@db:3306/optuna",
		"postgresql://me:s3/cret@db/optuna":          "postgresql://me@db/optuna",
		"postgresql://me:s3@cr?et@db/optuna":         "postgresql://me@db/optuna",
		"postgresql://me:s3%zzcret@db/optuna":        "postgresql://me@db/optuna",
		"postgresql://me:s3:cret@[::1]:5432/optuna":  "postgresql://me@[::1]:5432/optuna",
		"postgresql://db/optuna?password=s3cret":     "postgresql://db/optuna",
		"postgresql://:s3cret@/optuna?host=/var/run": "postgresql://@/optuna",
	} {
		if got := Redacted(source); got != want {
			t.Errorf("%s is shown as %s, want %s", source, got, want)
		}
	}
}

// What is wrong with a URL itself needs no Python.
func TestStorageErrors(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
	for source, want := range map[string]string{
		"mysql://me:s3%zzcret@db/optuna":                        "the URL cannot be read",
		"mysql://me:s3cret@db":                                  "names no database",
		"sqlite:///testdata/none.db":                            "no such file",
		"sqlite:///testdata/job.yaml":                           "not a storage of Optuna",
		"sqlite:///testdata":                                    "no regular file",
		"postgresql+psycopg2://me:s3cret@127.0.0.1:port/optuna": "the URL cannot be read",
	} {
		_, err := Optuna(t.Context(), source, OptunaOptions{})
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", source, err, want)
		} else if strings.Contains(err.Error(), "s3") {
			t.Errorf("%s: the error shows the password: %v", source, err)
		}
	}
	// The source is not at fault if there is no Python.
	for _, o := range []OptunaOptions{{}, {Python: "none/python"}} {
		_, err := Optuna(t.Context(), "testdata/optuna.db", o)
		want := "no python3 on the PATH"
		if o.Python != "" {
			want = `--python is "none/python"`
		}
		if err == nil || errors.Is(err, ErrSource) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}

func TestLocate(t *testing.T) {
	file, err := filepath.Abs("testdata/optuna.db")
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]database{
		"testdata/optuna.db":                  {File: file},
		"sqlite:///testdata/optuna.db":        {File: file},
		"sqlite+pysqlite:///" + file + "?a=b": {File: file},
		"postgres://me@db/o?sslmode=require":  {URL: "postgresql://me@db/o?sslmode=require"},
		"postgres+psycopg://db/o":             {URL: "postgresql+psycopg://db/o"},
		"postgresql+psycopg2://me:a%40@db/o":  {URL: "postgresql+psycopg2://me:a%40@db/o"},
		"mysql+pymysql://me@db:3306/o":        {URL: "mysql+pymysql://me@db:3306/o"},
		"other://db":                          {URL: "other://db"},
	} {
		if got, err := locate(source); err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", source, got, err, want)
		}
	}
}

// A message of a driver does not show a password, however it is written.
func TestHidden(t *testing.T) {
	const source = "postgresql://me:s3%2Fcret%40@db/optuna?sslpassword=h1dden"
	const text = "of " + source + ": s3%2Fcret%40, s3/cret@, s3%2Fcret@ or h1dden at db"
	if got, want := hidden(text, source), "of postgresql://me@db/optuna: ***, ***, *** or *** at db"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := hidden(text, "optuna.db"); got != text {
		t.Errorf("the text of a file becomes %q", got)
	}
}

// The interpreter is the one that is named, that of an active environment, or the first on the PATH.
func TestFindPython(t *testing.T) {
	dir := t.TempDir()
	program := func(path ...string) string {
		made := filepath.Join(append([]string{dir}, path...)...)
		if err := os.MkdirAll(filepath.Dir(made), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(made, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		return made
	}
	named, venv, conda := program("named", "pypy"), program("venv", "bin", "python"), program("conda", "bin", "python")
	third, plain := program("third", "python3"), program("plain", "python")
	both := filepath.Dir(plain) + string(os.PathListSeparator) + filepath.Dir(third)
	for _, tt := range []struct{ named, venv, conda, path, want string }{
		{named, dir + "/venv", dir + "/conda", both, named},
		{"pypy", dir + "/venv", "", filepath.Dir(named), named},
		{"", dir + "/venv", dir + "/conda", both, venv},
		{"", "", dir + "/conda", both, conda},
		{"", dir + "/gone", "", both, third},
		{"", "", "", filepath.Dir(plain), plain},
	} {
		t.Setenv("VIRTUAL_ENV", tt.venv)
		t.Setenv("CONDA_PREFIX", tt.conda)
		t.Setenv("PATH", tt.path)
		if got, err := findPython(tt.named); err != nil || got != tt.want {
			t.Errorf("%+v: found %s, %v", tt, got, err)
		}
	}
}

// copied is what the script writes of a storage with two trials.
const copied = `{"fault":"","text":""}
{"op_code":0,"study_name":"other","directions":[1]}
{"op_code":0,"study_name":"s","directions":[2]}
{"op_code":2,"study_id":1,"user_attr":{"sizes":[64,NaN]}}
{"op_code":4,"study_id":1,"number":3,"state":1,"values":[0.5],"params":{"z":0.5,"a":1},"distributions":{"z":"{\"name\": \"FloatDistribution\", \"attributes\": {\"low\": 0, \"high\": 1}}","a":"{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [1, 1.0]}}"},"user_attrs":{"seconds":1.5},"system_attrs":{"constraints":[0.5,-1]}}
{"op_code":4,"study_id":1,"number":7,"state":3,"values":null,"params":{"z":Infinity},"distributions":{"z":"{}"},"user_attrs":{},"system_attrs":{}}
`

// Trials keep their numbers, and parameters their order.
func TestCopy(t *testing.T) {
	s, err := readCopy(strings.NewReader(copied), "python", "", "s")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.trials) != 2 || s.trials[0].number != 3 || s.trials[1].number != 7 || s.trials[1].state != "FAIL" ||
		s.objectives[0].Direction != study.Maximize {
		t.Errorf("%+v", s)
	}
	first := s.trials[0]
	if diff := cmp.Diff(map[string]any{"z": 0.5, "a": "1.0"}, first.point()); diff != "" || first.parameters[0].name != "z" {
		t.Errorf("parameters %+v: %s", first.parameters, diff)
	}
	if first.attributes["seconds"] != 1.5 || first.constraints["constraints_0"] != 0.5 || first.constraints["constraints_1"] != -1 ||
		len(s.attributes) != 1 {
		t.Errorf("attributes %v of %v, constraints %v", first.attributes, s.attributes, first.constraints)
	}
}

// What is said of a fault, and whether the source is at fault.
func TestCopyFaults(t *testing.T) {
	const journalled = `{"fault":"","text":""}` + "\n"
	for text, want := range map[string]struct {
		text   string
		source bool
	}{
		`{"fault":"optuna","text":"No module named 'optuna'"}`: {"/venv/python -m pip install optuna", false},
		`{"fault":"driver","text":"PyMySQL"}`:                  {"/venv/python -m pip install 'PyMySQL'", false},
		`{"fault":"server","text":"refused:\n  s3cret"}`:       {"open the storage: refused: ***", false},
		`{"fault":"version","text":"Please upgrade."}`:         {"Please upgrade. Or name by --python", true},
		`{"fault":"storage","text":"the file is damaged"}`:     {"the file is damaged", true},
		`[]`:                                  {"read the storage by /venv/python", false},
		strings.Repeat("a", maxElement+1<<16): {"larger than 4 MiB", false},
		journalled + `{"op_code":1}`:          {"the storage has no studies", true},
		journalled + `{"op_code":99}`:         {"as /venv/python has read it: line 1: op_code is 99", true},
		journalled + strings.Repeat("a", maxElement+1<<16): {"line 1: it is larger than 4 MiB", true},
	} {
		_, err := readCopy(strings.NewReader(text+"\n"), "/venv/python", "mysql://me:s3cret@db/o", "")
		if err == nil || !strings.Contains(err.Error(), want.text) || errors.Is(err, ErrSource) != want.source {
			t.Errorf("%.60s: error %v, want %+v", text, err, want)
		}
	}
	if _, err := readCopy(strings.NewReader(`{"fault":""`), "python", "", ""); !errors.Is(err, errCut) {
		t.Errorf("an answer that is cut off: %v", err)
	}
}

// A storage has as many trials as a study may have.
func TestTooManyTrials(t *testing.T) {
	j := &journal{studies: []storedStudy{{name: "s"}}, ofStudy: [][]int{nil}, trials: make([]*optunaTrial, maxTrials-1)}
	if err := j.apply(&journalEntry{Op: journalCreateTrial}); err != nil {
		t.Errorf("the last trial: %v", err)
	}
	if err := j.apply(&journalEntry{Op: journalCreateTrial}); err == nil || !strings.Contains(err.Error(), "more than 1000000 trials") {
		t.Errorf("one more: error %v", err)
	}
}

// Of messages, only the end is kept.
func TestLastBytes(t *testing.T) {
	l := &lastBytes{}
	for range 10 {
		if n, err := l.Write(bytes.Repeat([]byte("a\n"), maxMessages)); n != 2*maxMessages || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := l.Write([]byte("ValueError: b\n\n")); err != nil || len(l.kept) != maxMessages || l.line() != "ValueError: b" {
		t.Errorf("%d bytes kept, the last line is %q, %v", len(l.kept), l.line(), err)
	}
}
