//go:build python

package migrate

import (
	"errors"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study/file"
)

// TestOptunaServers reads storages that Optuna itself makes in a real PostgreSQL and a real MariaDB.
// They hold the same study as testdata/optuna.db, which the same script has made, so each must
// be read like that file.
func TestOptunaServers(t *testing.T) {
	want, err := Optuna(t.Context(), filepath.Join("testdata", "optuna.db"), OptunaOptions{Python: python, Study: "My Study", Initial: 3})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := file.Parse(want.Study)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Spec.Parameters[5].When = map[string][]any{"solver": {"sgd"}}
	trials, skipped, err := OptunaTrials(t.Context(), filepath.Join("testdata", "optuna.db"), OptunaOptions{Python: python, Study: "My Study"},
		&parsed.Spec)
	if err != nil || len(trials) != 11 || len(skipped) != 1 {
		t.Fatalf("optuna.db: %d trials, %v left out, %v", len(trials), skipped, err)
	}
	for _, server := range []struct {
		name  string
		start func(testing.TB) *url.URL
		// driver is that of Python.
		driver string
		// variable holds the password where the URL has none.
		variable string
		// refused is what is said of a wrong password.
		refused string
	}{
		{"PostgreSQL", startPostgres, "postgresql+psycopg", "PGPASSWORD", "password authentication failed"},
		{"MariaDB", startMariaDB, "mysql+pymysql", "MYSQL_PWD", "Access denied"},
	} {
		t.Run(server.name, func(t *testing.T) {
			at := server.start(t)
			driven := *at
			driven.Scheme = server.driver
			if output, err := exec.CommandContext(t.Context(), python, "testdata/make_optuna.py", driven.String()).CombinedOutput(); err != nil {
				t.Fatalf("make_optuna.py: %v\n%s", err, output)
			}
			bare := *at
			bare.User = url.User(databaseUser)
			t.Setenv(server.variable, databasePassword)
			for _, source := range []string{at.String(), driven.String(), bare.String()} {
				got, err := Optuna(t.Context(), source, OptunaOptions{Python: python, Study: "My Study", Initial: 3})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s is not read like optuna.db:\n%s", Redacted(source), diff)
				}
				gotTrials, gotSkipped, err := OptunaTrials(t.Context(), source, OptunaOptions{Python: python, Study: "My Study"}, &parsed.Spec)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(trials, gotTrials); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(skipped, gotSkipped); diff != "" {
					t.Error(diff)
				}
			}

			empty, wrong, missing := *at, *at, *at
			empty.Path = "/" + otherName
			wrong.User = url.UserPassword(databaseUser, "wr0ng")
			missing.Path += "s"
			for _, tt := range []struct{ source, study, want string }{
				{at.String(), "other", `no study "other": want one of "My Study", "empty"`},
				{wrong.String(), "", server.refused},
				{missing.String(), "", "storages"},
				{empty.String(), "", "not a storage of Optuna"},
			} {
				_, err := Optuna(t.Context(), tt.source, OptunaOptions{Python: python, Study: tt.study})
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: error %v, want %q", tt.source, err, tt.want)
				}
				if errors.Is(err, ErrSource) != (tt.source == at.String() || tt.source == empty.String()) {
					t.Errorf("whether the source is at fault: %v", err)
				}
				for _, secret := range []string{"wr0ng", databasePassword, url.QueryEscape(databasePassword), url.PathEscape(databasePassword)} {
					if err != nil && strings.Contains(err.Error(), secret) {
						t.Errorf("the error shows the password: %v", err)
					}
				}
			}
			empty.Scheme = server.driver
			if tables := ran(t, "import sqlalchemy, sys\nprint(sqlalchemy.inspect(sqlalchemy.create_engine(sys.argv[1])).get_table_names())",
				empty.String()); tables != "[]\n" {
				t.Errorf("an import made the tables %s", tables)
			}
		})
	}
}
