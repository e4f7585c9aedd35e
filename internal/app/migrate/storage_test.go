package migrate

import (
	"strings"
	"testing"
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

func TestStorageErrors(t *testing.T) {
	for source, want := range map[string]string{
		"oracle://me:s3cret@db/optuna":                          `of kind "oracle"; want a file of SQLite, sqlite:///FILE, mysql://`,
		"mysql://me:s3%zzcret@db/optuna":                        "the URL cannot be read",
		"mysql://me:s3cret@db":                                  "names no database",
		"mysql://me:s3cret@db/optuna?local_infile=1":            `setting "local_infile" of the URL; want charset, ssl_ca, tls, unix_socket`,
		"mysql://me:s3cret@db/optuna?tls=maybe":                 "tls=maybe of the URL; want true, false, preferred or skip-verify",
		"mysql://me:s3cret@db/optuna?ssl_ca=testdata/none":      "no such file",
		"mysql://me:s3cret@db/optuna?ssl_ca=testdata/job.yaml":  "has no certificate",
		"mysql://me:s3cret@127.0.0.1:1/optuna":                  "connection refused",
		"postgresql://me:s3cret@127.0.0.1:1/optuna":             "connection refused",
		"postgresql://me:s3cret@db/optuna?sslmode=s":            "sslmode is invalid",
		"postgresql://me@db/optuna?password=s3cret":             "want the password before the @, or in PGPASSWORD",
		"sqlite:///testdata/none.db":                            "no such file",
		"sqlite:///testdata/job.yaml":                           "not a storage of Optuna",
		"postgresql+psycopg2://me:s3cret@127.0.0.1:port/optuna": "the URL cannot be read",
	} {
		_, err := Optuna(t.Context(), source, OptunaOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", source, err, want)
		} else if strings.Contains(err.Error(), "s3") {
			t.Errorf("%s: the error shows the password: %v", source, err)
		}
	}
	if r, err := Optuna(t.Context(), "sqlite:///testdata/optuna.db", OptunaOptions{Study: "My Study"}); err != nil || r == nil {
		t.Errorf("the URL of a file: %v", err)
	}
}
