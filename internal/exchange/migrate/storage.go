package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// acceptedStorages are the forms of a storage, for errors.
const acceptedStorages = "a file of SQLite or of a journal, sqlite:///FILE, mysql://USER@HOST/DATABASE or postgresql://USER@HOST/DATABASE"

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

// database says where a database is: one of the two is set.
type database struct {
	File string `json:"file,omitempty"` // of SQLite, an absolute path
	URL  string `json:"url,omitempty"`
}

// locate returns the database that a source names: the path of a file of SQLite, or a URL as SQLAlchemy
// writes it, such as postgresql+psycopg2://… The error wraps ErrSource, and does not hold the password.
func locate(source string) (database, error) {
	if !IsStorageURL(source) {
		return locateFile(source)
	}
	u, err := url.Parse(source)
	if err != nil { // the error shows the URL
		return database{}, fmt.Errorf("%w: the URL cannot be read; want %s, where special characters of a password are escaped, such as %%40 "+
			"for @", ErrSource, acceptedStorages)
	}
	switch dialect, _, _ := strings.Cut(u.Scheme, "+"); dialect { // what follows is a driver of Python
	case "sqlite":
		return locateFile(strings.TrimPrefix(u.Path, "/"))
	case "postgres": // SQLAlchemy has only the long name
		source = "postgresql" + source[len(dialect):]
	case "mysql", "mariadb":
		if strings.Trim(u.Path, "/") == "" {
			return database{}, fmt.Errorf("%w: the URL names no database; want mysql://USER@HOST/DATABASE", ErrSource)
		}
	}
	return database{URL: source}, nil
}

// locateFile checks that there is a file of SQLite.
func locateFile(path string) (_ database, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return database{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	if !info.Mode().IsRegular() {
		return database{}, fmt.Errorf("%w: it is no regular file; want %s", ErrSource, acceptedStorages)
	}
	f, err := os.Open(path)
	if err != nil {
		return database{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	defer func() { _ = f.Close() }() // only read
	magic := []byte("SQLite format 3\x00")
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(f, begin); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return database{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	if !bytes.Equal(begin, magic) {
		return database{}, fmt.Errorf("%w: not a storage of Optuna: want %s", ErrSource, acceptedStorages)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return database{}, fmt.Errorf("locate the storage: %w", err)
	}
	return database{File: absolute}, nil
}

// hidden returns a text without the password of a URL, for messages of others.
func hidden(text, source string) string {
	_, rest, found := strings.Cut(source, "://")
	if !found {
		return text
	}
	text = strings.ReplaceAll(text, source, Redacted(source))
	u, err := url.Parse(source)
	if err != nil {
		return text
	}
	secrets := []string{}
	if login := strings.LastIndex(rest, "@"); login >= 0 {
		_, written, _ := strings.Cut(rest[:login], ":")
		secrets = append(secrets, written)
	}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password, url.QueryEscape(password), url.PathEscape(password))
	}
	for name, values := range u.Query() {
		if strings.Contains(strings.ToLower(name), "pass") {
			secrets = append(secrets, values...)
		}
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}
