package migrate

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// connectTimeout limits how long a database server may take to answer.
const connectTimeout = 10 * time.Second

// acceptedStorages are the forms of a storage, for errors.
const acceptedStorages = "a file of SQLite, sqlite:///FILE, mysql://USER@HOST/DATABASE or postgresql://USER@HOST/DATABASE"

// IsStorageURL reports whether a source is the URL of a database, as Optuna writes it, and
// not a file.
func IsStorageURL(source string) bool { return strings.Contains(source, "://") }

// Redacted returns a source without a password, for errors and logs.
func Redacted(source string) string {
	scheme, rest, found := strings.Cut(source, "://")
	if !found {
		return source
	}
	// Not by url.Parse alone: what it refuses must not be shown either.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 || strings.Contains(rest[end:], "@") { // a password with such a character
		end = strings.LastIndex(rest, "@") + 1
	}
	login, at := "", strings.LastIndex(rest[:end], "@")
	if at >= 0 {
		user, _, _ := strings.Cut(rest[:at], ":")
		login, rest = user+"@", rest[at+1:]
	}
	rest, _, _ = strings.Cut(rest, "?") // settings may hold a password too
	return scheme + "://" + login + rest
}

// storage reads a storage of Optuna in one transaction, so that a study that goes on does not
// change between two queries.
type storage struct {
	db *sql.DB
	tx *sql.Tx
	// numbered is whether parameters of queries are $1 instead of ?.
	numbered bool
}

// openStorage opens a storage to read it: the path of a file of SQLite, or the URL of a
// database as SQLAlchemy writes it, such as postgresql+psycopg2://… An error does not hold the
// password. It wraps ErrSource unless a server cannot be reached or refuses the login.
func openStorage(ctx context.Context, source string) (*storage, error) {
	s, isolation := &storage{}, sql.LevelDefault
	dialect, path := "sqlite", source
	var u *url.URL
	var err error
	if IsStorageURL(source) {
		if u, err = url.Parse(source); err != nil { // the error shows the URL
			return nil, fmt.Errorf("%w: the URL cannot be read; want %s, where special characters of a password are escaped, such as %%40 for @", ErrSource, acceptedStorages)
		}
		dialect, _, _ = strings.Cut(u.Scheme, "+") // what follows is a driver of Python
		path = strings.TrimPrefix(u.Path, "/")
	}
	switch dialect {
	case "sqlite":
		s.db, err = openSQLite(path)
	case "mysql", "mariadb":
		isolation = sql.LevelRepeatableRead
		s.db, err = openMySQL(u)
	case "postgresql", "postgres":
		isolation, s.numbered = sql.LevelRepeatableRead, true
		s.db, err = openPostgres(u)
	default:
		return nil, fmt.Errorf("%w: the storage is of kind %q; want %s", ErrSource, u.Scheme, acceptedStorages)
	}
	if err != nil {
		return nil, err
	}
	if s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{Isolation: isolation, ReadOnly: true}); err != nil {
		return nil, errors.Join(fmt.Errorf("open the storage: %w", err), s.db.Close())
	}
	if dialect == "sqlite" {
		if err := s.checkSQLite(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// checkSQLite refuses a file that is damaged, or that was made to be large when it is read: whose
// tables are views, or have columns that are computed.
func (s *storage) checkSQLite(ctx context.Context) error {
	const names = `('studies', 'study_directions', 'trials', 'trial_values', 'trial_params', 'trial_user_attributes', 'trial_system_attributes', 'study_user_attributes')`
	text := func(r *sql.Rows, t *string) error { return r.Scan(t) }
	computed, err := queried(ctx, s, text, "SELECT name FROM sqlite_schema AS s WHERE lower(name) IN "+names+` AND (type <> 'table' OR rootpage = 0
		OR EXISTS (SELECT 1 FROM pragma_table_xinfo(s.name) WHERE hidden <> 0))`)
	if err != nil {
		return err
	}
	if len(computed) > 0 {
		return fmt.Errorf("%w: not a storage of Optuna: %s is not a plain table", ErrSource, strings.Join(computed, ", "))
	}
	damage, err := queried(ctx, s, text, "PRAGMA quick_check(1)")
	if err != nil {
		return err
	}
	if len(damage) != 1 || damage[0] != "ok" {
		return fmt.Errorf("%w: the file is damaged: %s", ErrSource, strings.Join(damage, "; "))
	}
	return nil
}

// Close ends the transaction and the connection.
func (s *storage) Close() error { return errors.Join(s.tx.Rollback(), s.db.Close()) }

// sqliteSettings keep SQLite from writing, from building an index in memory for a table without one,
// and from calling functions that a file names.
const sqliteSettings = "mode=ro&_pragma=automatic_index(0)&_pragma=trusted_schema(0)"

func openSQLite(path string) (*sql.DB, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", ErrSource, err) // SQLite would create the file
	case err == nil && !info.Mode().IsRegular(): // SQLite would only say "disk I/O error"
		return nil, fmt.Errorf("%w: it is no regular file; want %s", ErrSource, acceptedStorages)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("locate the storage: %w", err)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: absolute, RawQuery: sqliteSettings}).String())
	if err != nil {
		return nil, fmt.Errorf("open the storage: %w", err)
	}
	return db, nil
}

// openPostgres opens a database of PostgreSQL. Settings of the URL are those of libpq, such as
// sslmode; what is left out comes from libpq's variables, such as PGPASSWORD, and ~/.pgpass.
func openPostgres(u *url.URL) (*sql.DB, error) {
	for _, name := range []string{"password", "sslpassword"} { // an error of pgx would show it
		if u.Query().Has(name) {
			return nil, fmt.Errorf("%w: setting %q of the URL; want the password before the @, or in PGPASSWORD", ErrSource, name)
		}
	}
	plain := *u
	plain.Scheme = "postgres"
	c, err := pgx.ParseConfig(plain.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err) // it hides the password
	}
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, connectTimeout)
	return stdlib.OpenDB(*c), nil
}

// mysqlSettings are the settings that a URL of MySQL may have.
var mysqlSettings = []string{"charset", "ssl_ca", "tls", "unix_socket"}

// openMySQL opens a database of MySQL or MariaDB. A password that the URL leaves out is that of
// MYSQL_PWD, as for MySQL's own programs.
func openMySQL(u *url.URL) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.User, c.DBName, c.Timeout = u.User.Username(), strings.TrimPrefix(u.Path, "/"), connectTimeout
	c.Logger = &mysql.NopLogger{} // an error says it too
	var set bool
	if c.Passwd, set = u.User.Password(); !set {
		c.Passwd = os.Getenv("MYSQL_PWD")
	}
	if c.DBName == "" {
		return nil, fmt.Errorf("%w: the URL names no database; want mysql://USER@HOST/DATABASE", ErrSource)
	}
	c.Net, c.Addr, c.TLSConfig = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), "preferred"
	settings := u.Query()
	for name := range settings {
		if !slices.Contains(mysqlSettings, name) {
			return nil, fmt.Errorf("%w: setting %q of the URL; want %s", ErrSource, name, strings.Join(mysqlSettings, ", "))
		}
	}
	if socket := settings.Get("unix_socket"); socket != "" {
		c.Net, c.Addr, c.TLSConfig = "unix", socket, ""
	}
	switch way := settings.Get("tls"); way {
	case "":
	case "true", "false", "preferred", "skip-verify":
		c.TLSConfig = way
	default:
		return nil, fmt.Errorf("%w: tls=%s of the URL; want true, false, preferred or skip-verify", ErrSource, way)
	}
	if path := settings.Get("ssl_ca"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%w: ssl_ca of the URL: %w", ErrSource, err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: ssl_ca=%s of the URL has no certificate in PEM", ErrSource, path)
		}
		c.TLSConfig, c.TLS = "", &tls.Config{RootCAs: roots, ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	return sql.OpenDB(connector), nil
}

// queried returns all rows of a query, whose parameters are written as ?.
func queried[T any](ctx context.Context, s *storage, scan func(*sql.Rows, *T) error, query string, args ...any) (all []T, err error) {
	if s.numbered {
		for n := range args {
			query = strings.Replace(query, "?", fmt.Sprintf("$%d", n+1), 1)
		}
	}
	rows, err := s.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%w: not a storage of Optuna: %w", ErrSource, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, fmt.Errorf("%w: read the storage: %w", ErrSource, err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%w: read the storage: %w", ErrSource, err)
	}
	return all, nil
}
