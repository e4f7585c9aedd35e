//go:build python

package migrate

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// Names and password of the databases that startPostgres and startMariaDB make.
const (
	databaseUser     = "optuna"
	databasePassword = "s3cret/of#the@test"
	databaseName     = "storage"
	otherName        = "other"
)

// startPostgres starts a PostgreSQL with two empty databases, whose user has a password, and
// returns the URL of one. It needs Debian's package postgresql, or its programs on the PATH.
func startPostgres(t testing.TB) *url.URL {
	t.Helper()
	bin := filepath.Dir(installed(t, "postgresql", "initdb", "/usr/lib/postgresql/*/bin/initdb"))
	owner := newOwner(t)
	data, secret, port := filepath.Join(owner.dir, "data"), filepath.Join(owner.dir, "password"), testenv.FreePort(t)
	owner.write(secret, databasePassword)
	owner.run(filepath.Join(bin, "initdb"), "--pgdata="+data, "--username="+databaseUser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--no-sync")
	u := databaseURL("postgresql", port)
	admin := *u
	admin.Scheme, admin.Path = "postgresql+psycopg", "/postgres"
	owner.start(&admin, filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", owner.dir, "-F")
	return u
}

// startMariaDB starts a MariaDB with two empty databases, whose user has a password, and returns the
// URL of one. It needs Debian's packages mariadb-server-core and
// mariadb-client-core, or their programs on the PATH.
func startMariaDB(t testing.TB) *url.URL {
	t.Helper()
	install, server := installed(t, "mariadb-server-core", "mariadb-install-db", "/usr/bin/mariadb-install-db"),
		installed(t, "mariadb-server-core", "mariadbd", "/usr/sbin/mariadbd")
	owner := newOwner(t)
	data, login, port := filepath.Join(owner.dir, "data"), filepath.Join(owner.dir, "login.sql"), testenv.FreePort(t)
	owner.write(login, fmt.Sprintf("CREATE USER '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\nGRANT ALL ON *.* TO '%[1]s'@'127.0.0.1';\n",
		databaseUser, databasePassword))
	owner.run(install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	u := databaseURL("mysql", port)
	admin := *u
	admin.Scheme, admin.Path = "mysql+pymysql", "/"
	owner.start(&admin, server, "--no-defaults", "--datadir="+data, "--init-file="+login,
		"--bind-address=127.0.0.1", "--skip-name-resolve", "--port="+strconv.Itoa(port), "--socket="+filepath.Join(owner.dir, "socket"),
		"--pid-file="+filepath.Join(owner.dir, "pid"), "--innodb-flush-log-at-trx-commit=0")
	return u
}

func databaseURL(scheme string, port int) *url.URL {
	return &url.URL{Scheme: scheme, User: url.UserPassword(databaseUser, databasePassword), Host: fmt.Sprintf("127.0.0.1:%d", port),
		Path: "/" + databaseName}
}

// installed returns the path of a program, where Debian keeps it or on the PATH.
func installed(t testing.TB, pkg, name, pattern string) string {
	t.Helper()
	if found, _ := filepath.Glob(pattern); len(found) > 0 { // the pattern is valid
		return slices.Max(found)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: make test-client installs Debian's package %s as root; elsewhere install it and put its programs on the PATH",
			name, pkg)
	}
	return path
}

// owner is the account that runs a database server, which refuses to run as root, and
// its directory.
type owner struct {
	t   testing.TB
	dir string
	uid int
	gid int
	// as are the words before a command that make it run as this account.
	as []string
}

// newOwner returns the test's own account, and nobody's for root.
func newOwner(t testing.TB) *owner {
	t.Helper()
	// The test's own directory may be closed to others, and be too long for a socket's path.
	dir, err := os.MkdirTemp("/tmp", "database.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	o := &owner{t: t, dir: dir, uid: os.Getuid(), gid: os.Getgid()}
	if o.uid != 0 {
		return o
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	o.uid, _ = strconv.Atoi(nobody.Uid)
	o.gid, _ = strconv.Atoi(nobody.Gid)
	o.as = []string{"setpriv", "--reuid=" + nobody.Uid, "--regid=" + nobody.Gid, "--clear-groups", "--pdeathsig=KILL"}
	o.own(dir)
	return o
}

func (o *owner) own(path string) {
	o.t.Helper()
	if err := os.Chown(path, o.uid, o.gid); err != nil {
		o.t.Fatal(err)
	}
}

func (o *owner) write(path, text string) {
	o.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
	o.own(path)
}

// env keeps temporary files where the account may write.
func (o *owner) env() []string { return []string{"TMPDIR=" + o.dir} }

// run runs a command to its end.
func (o *owner) run(words ...string) {
	o.t.Helper()
	words = slices.Concat(o.as, words)
	cmd := exec.CommandContext(o.t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = o.dir, append(cmd.Environ(), o.env()...)
	if output, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, output)
	}
}

// executed executes statements on a server once it takes a login; each argument after its URL is one.
const executed = `
import sys
import time
import sqlalchemy
engine = sqlalchemy.create_engine(sys.argv[1], isolation_level="AUTOCOMMIT")
for tries in range(600, 0, -1):
    try:
        engine.connect().close()
        break
    except sqlalchemy.exc.OperationalError:
        if tries == 1:
            raise
        time.sleep(0.1)
with engine.connect() as connection:
    for statement in sys.argv[2:]:
        connection.exec_driver_sql(statement)
`

// start starts a server, waits until it takes its user's login, and makes the databases.
func (o *owner) start(login *url.URL, words ...string) {
	o.t.Helper()
	words = slices.Concat(o.as, words)
	server := testenv.Start(o.t, words[0], words[1:], o.env(), func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", login.Host)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	o.t.Cleanup(server.Stop) // killed, it would leave processes that write while the directory is removed
	ran(o.t, executed, login.String(), "CREATE DATABASE "+databaseName, "CREATE DATABASE "+otherName)
}
