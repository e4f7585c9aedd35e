package embedded

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/internal/base/etcdfile"
)

const (
	// contentsNote is a file in the data directory that has the checksum of the database's
	// contents. It is there while no server runs, unless the last one was killed: then only the
	// form of the database can be checked.
	contentsNote = "contents"
	// contentsLimit is the largest database whose contents are summed when a server closes. It
	// takes about a second for this many bytes.
	contentsLimit = 512 << 20
)

// DataDir returns the directory of etcd's own files in the directory of EtcdOptions.
func DataDir(dir string) string { return filepath.Join(dir, "data") }

// CheckEtcd checks the files of an etcd that is not running; there may be none. valid is that of
// EtcdOptions. The error wraps an *etcdfile.Damage.
func CheckEtcd(dir string, valid func(key, value []byte) error) error {
	if !etcdfile.Exists(DataDir(dir)) {
		if noted(dir) != "" {
			return &etcdfile.Damage{File: DataDir(dir), What: "its files are missing"}
		}
		return nil
	}
	is, err := etcdfile.Check(DataDir(dir), etcdfile.Options{SegmentBytes: segmentBytes, Valid: valid})
	if err != nil {
		return err
	}
	if note := noted(dir); note != "" && note != sumLine(is) {
		return &etcdfile.Damage{
			File: databaseOf(dir),
			What: "its contents are not those with which it was closed",
		}
	}
	return nil
}

// SalvageEtcd reads what the files of an etcd that is not running still hold. valid is that of
// EtcdOptions.
func SalvageEtcd(dir string, valid func(key, value []byte) error) etcdfile.Saved {
	saved := etcdfile.Salvage(DataDir(dir), etcdfile.Options{SegmentBytes: segmentBytes, Valid: valid})
	// What was closed has all of the log in its database.
	saved.Cut = saved.Cut && noted(dir) == ""
	return saved
}

// sumLine is the text of the note about contents. It has a checksum of its own, so that a damaged
// note is not taken for a damaged database.
func sumLine(c etcdfile.Contents) string {
	line := fmt.Sprintf("%08x %d ", c.Sum, c.Index)
	return fmt.Sprintf("%s%08x\n", line, crc32.ChecksumIEEE([]byte(line)))
}

// noted returns the note about contents; empty if there is none, or if it is damaged.
func noted(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, contentsNote))
	var c etcdfile.Contents
	var sum uint32
	if err != nil {
		return ""
	}
	if _, err := fmt.Sscanf(string(text), "%08x %d %08x\n", &c.Sum, &c.Index, &sum); err != nil || sumLine(c) != string(text) {
		return ""
	}
	return string(text)
}

// noteContents notes the contents of a server that was closed. If it cannot, the next start has less
// to compare.
func noteContents(dir string) {
	info, err := os.Stat(databaseOf(dir))
	if err != nil || info.Size() > contentsLimit {
		return
	}
	if c, err := etcdfile.Sum(DataDir(dir)); err == nil {
		_ = renameio.WriteFile(filepath.Join(dir, contentsNote), []byte(sumLine(c)), 0o600) // see above
	}
}

func databaseOf(dir string) string { return filepath.Join(DataDir(dir), "member", "snap", "db") }

// forgetContents removes the note before the contents change.
func forgetContents(dir string) error {
	if err := os.Remove(filepath.Join(dir, contentsNote)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note about the contents: %w", err)
	}
	return nil
}
