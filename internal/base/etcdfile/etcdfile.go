// Package etcdfile reads the files of an etcd server that is not running, without trusting them.
// It finds damage that etcd or bbolt would meet with a panic, with a wait for what
// never comes, or not at all; and it reads what damaged files still hold.
//
// It reads the format of bbolt's file itself, and checks every number before it uses it: bbolt maps
// the file into memory and follows what it finds there.
package etcdfile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Damage says which file of an etcd is damaged, and how.
type Damage struct {
	// File is the path of the file or of the directory.
	File string
	// What is wrong with it.
	What string
}

// Error names the file and what is wrong.
func (d *Damage) Error() string { return d.File + " is damaged: " + d.What }

// Options say what is known of an etcd's files.
type Options struct {
	// SegmentBytes is the size to which the server preallocates each file of its log; 0 skips
	// this check.
	SegmentBytes int64
	// Valid returns why a key cannot have a value; nil skips this check.
	Valid func(key, value []byte) error
}

// Contents says what is in the files of an etcd.
type Contents struct {
	// Sum is the CRC-32C of all that is in the database.
	Sum uint32
	// Index is the log's entry that the database contains last.
	Index uint64
}

// The parts of a data directory.
func databaseOf(dir string) string { return filepath.Join(dir, "member", "snap", "db") }
func logOf(dir string) string      { return filepath.Join(dir, "member", "wal") }

// Exists reports whether an etcd has ever been started with a data directory.
func Exists(dir string) bool {
	_, errLog := os.Stat(logOf(dir))
	_, errDB := os.Stat(databaseOf(dir))
	return errLog == nil || errDB == nil
}

// Check reads all files of a data directory. The error is a *Damage, or says why a file cannot be read.
func Check(dir string, o Options) (Contents, error) {
	var c Contents
	log, err := readLog(logOf(dir), o.SegmentBytes, nil)
	if err != nil {
		return c, err
	}
	snapshot, err := checkSnapshots(filepath.Dir(databaseOf(dir)), log)
	if err != nil {
		return c, err
	}
	path := databaseOf(dir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if log.first > 1 || snapshot > 0 {
			return c, &Damage{path, "it is missing"}
		}
		return c, nil // etcd makes it from the log
	}
	c, err = checkDatabase(path, o)
	if err != nil {
		return c, err
	}
	switch {
	case c.Index > log.last:
		return c, &Damage{logOf(dir), fmt.Sprintf("it ends with entry %d, but the database contains entry %d", log.last, c.Index)}
	case c.Index+1 < log.first:
		return c, &Damage{path, fmt.Sprintf("it ends with entry %d, but the log begins with entry %d", c.Index, log.first)}
	}
	return c, nil
}

// Sum reads the database of a data directory. The error is that of Check.
func Sum(dir string) (Contents, error) { return checkDatabase(databaseOf(dir), Options{}) }

// checkDatabase reads the database.
func checkDatabase(path string, o Options) (c Contents, err error) {
	d, err := openDatabase(path)
	if err != nil {
		return c, err
	}
	defer func() { _ = d.close() }() // it was only read
	m := model{path: path, valid: o.Valid}
	sum := crc32.New(castagnoli)
	err = d.walk(func(bucket, key, value []byte) error {
		for _, part := range [][]byte{bucket, key, value} {
			_, _ = sum.Write([]byte{byte(len(part)), byte(len(part) >> 8), byte(len(part) >> 16)}) // never fails
			_, _ = sum.Write(part)
		}
		return m.add(bucket, key, value)
	})
	if err == nil {
		err = m.end()
	}
	return Contents{Sum: sum.Sum32(), Index: m.index}, err
}

// Walk visits all keys of a bbolt database in order, bucket by bucket. The error is a *Damage, visit's,
// or says why the file cannot be read.
func Walk(path string, visit func(bucket, key, value []byte) error) error {
	d, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.close() }() // it was only read
	return d.walk(visit)
}

// Record is a version of a key.
type Record struct {
	*mvccpb.KeyValue
	// Deleted means that the key was deleted.
	Deleted bool
}
