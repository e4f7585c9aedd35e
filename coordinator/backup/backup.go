// Package backup writes the records of a ledger to a file, and reads them back into
// another etcd.
//
// A backup is gzip-compressed text, one JSON object a line: a Header, then each record's
// key and value, then a trailer with the number of records and the SHA-256 of all lines
// before it. It is written and read page by page, so its size does not matter for memory.
package backup

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	format = "fantasia-backup"
	// version is the version of the format.
	version = 1
	// maxLine is longer than any line: base64 adds a third to a record.
	maxLine = 2*ledger.MaxBytes + 1<<16
	// maxText is more than all lines have together: etcd holds at most 8 GiB. Compressed, any
	// amount of text can be small.
	maxText = 16 << 30
)

var (
	// ErrFormat means that a file is not a backup that this version can read.
	ErrFormat = errors.New("not a backup that this version of Fantasia can read")
	// ErrDamaged means that a backup is incomplete or was changed.
	ErrDamaged = errors.New("the backup is damaged")
)

// Header is the first line of a backup.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Created is when the backup was begun, Revision the revision of etcd that it
	// contains, and Program the version of Fantasia that wrote it.
	Created  time.Time `json:"created"`
	Revision int64     `json:"revision"`
	Program  string    `json:"program"`
	// Study is set in the archive of one study.
	Study *Study `json:"study,omitempty"`
}

// Study is what the header of an archived study tells about it.
type Study struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	State   study.State `json:"state"`
	Trials  int         `json:"trials"`
	Started time.Time   `json:"started"`
	Ended   time.Time   `json:"ended"`
}

// line is a record, or the trailer if SHA256 is set.
type line struct {
	Key    string `json:"k,omitempty"`
	Value  []byte `json:"v,omitempty"`
	Keys   int    `json:"keys,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// Write writes the records of a ledger at one revision. program is the version of
// Fantasia. It can be called again with another writer if its error wraps
// ledger.ErrCompacted.
func Write(ctx context.Context, l *ledger.Ledger, w io.Writer, program string) (Header, ledger.Contents, error) {
	return writeFile(w, Header{Program: program}, func(begin func(int64) error, visit func(string, []byte) error) (ledger.Contents, error) {
		return l.Export(ctx, begin, visit)
	})
}

// WriteStudy is Write for the records of one study.
func WriteStudy(ctx context.Context, l *ledger.Ledger, w io.Writer, program string, s Study) (Header, ledger.Contents, error) {
	return writeFile(w, Header{Program: program, Study: &s},
		func(begin func(int64) error, visit func(string, []byte) error) (ledger.Contents, error) {
			return l.ExportStudy(ctx, s.ID, s.Name, begin, visit)
		})
}

// WriteRecords is Write for records that are in memory, by their keys relative to the prefix.
func WriteRecords(w io.Writer, program string, records map[string][]byte) error {
	_, _, err := writeFile(w, Header{Program: program},
		func(begin func(int64) error, visit func(string, []byte) error) (c ledger.Contents, err error) {
			err = begin(0)
			for _, key := range slices.Sorted(maps.Keys(records)) {
				if err == nil {
					err = visit(key, records[key])
				}
			}
			return ledger.Contents{Keys: len(records)}, err
		})
	return err
}

// writeFile completes the header and writes what export visits.
func writeFile(w io.Writer, h Header, export func(begin func(revision int64) error,
	visit func(key string, value []byte) error) (ledger.Contents, error)) (Header, ledger.Contents, error) {
	h.Format, h.Version, h.Created = format, version, time.Now().UTC()
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return h, ledger.Contents{}, fmt.Errorf("write a backup: %w", err)
	}
	sum := sha256.New()
	buffered := bufio.NewWriter(io.MultiWriter(zipped, sum))
	lines := json.NewEncoder(buffered)
	contents, err := export(func(revision int64) error {
		h.Revision = revision
		return lines.Encode(h)
	}, func(key string, value []byte) error {
		return lines.Encode(line{Key: key, Value: value})
	})
	if err != nil {
		return h, contents, err
	}
	if err := buffered.Flush(); err != nil {
		return h, contents, fmt.Errorf("write a backup: %w", err)
	}
	trailer := line{Keys: contents.Keys, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if err := errors.Join(json.NewEncoder(zipped).Encode(trailer), zipped.Close()); err != nil {
		return h, contents, fmt.Errorf("write a backup: %w", err)
	}
	return h, contents, nil
}

// Read reads a backup to its end and calls visit for each record. The error wraps
// ErrFormat or ErrDamaged if the backup cannot be used; that shows only at its end, so
// call Check first.
func Read(r io.Reader, visit func(key string, value []byte) error) (Header, error) {
	return readAtMost(r, maxText, visit)
}

// readAtMost is Read of a backup whose lines have at most so many bytes together.
func readAtMost(r io.Reader, most int64, visit func(key string, value []byte) error) (Header, error) {
	h, in, err := open(r)
	if err != nil {
		return h, err
	}
	for keys := 0; ; keys++ {
		want := in.digest()
		text, err := in.next()
		if err != nil {
			return h, err
		}
		if in.size > most {
			return h, fmt.Errorf("%w: decompressed, it has more than %d bytes", ErrDamaged, most)
		}
		var l line
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return h, fmt.Errorf("%w: record %d: %w", ErrDamaged, keys+1, err)
		}
		switch {
		case l.SHA256 == "":
			if err := visit(l.Key, l.Value); err != nil {
				return h, err
			}
		case l.SHA256 != want:
			return h, fmt.Errorf("%w: its checksum is %s, want %s", ErrDamaged, want, l.SHA256)
		case l.Keys != keys:
			return h, fmt.Errorf("%w: it has %d records, want %d", ErrDamaged, keys, l.Keys)
		default:
			return h, in.end()
		}
	}
}

// Check reads a backup to its end without any effect, and goes back to its beginning. The error
// is Read's.
func Check(ctx context.Context, r io.ReadSeeker) (Header, error) {
	h, err := Read(r, func(string, []byte) error { return ctx.Err() })
	if err != nil {
		return h, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return h, fmt.Errorf("read the backup again: %w", err)
	}
	return h, nil
}

// Inspect is Check, and returns the studies of the backup in the order of their creation.
func Inspect(ctx context.Context, r io.ReadSeeker) (Header, []ledger.Summary, error) {
	var o ledger.Overview
	h, err := Read(r, func(key string, value []byte) error {
		o.Put(key, value)
		return ctx.Err()
	})
	if err != nil {
		return h, nil, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return h, nil, fmt.Errorf("read the backup again: %w", err)
	}
	return h, o.Studies(), nil
}

// ReadHeader reads a backup's first line. The error wraps ErrFormat or ErrDamaged.
func ReadHeader(r io.Reader) (Header, error) {
	h, _, err := open(r)
	return h, err
}

// open reads the header.
func open(r io.Reader) (h Header, in *reader, err error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return h, nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	in = &reader{lines: bufio.NewScanner(zipped), sum: sha256.New()}
	in.lines.Buffer(make([]byte, 64<<10), maxLine)
	first, err := in.next()
	if err != nil && !errors.Is(err, errLong) {
		return h, nil, err
	}
	if err := json.Unmarshal(first, &h); err != nil || h.Format != format {
		return h, nil, fmt.Errorf("%w: its first line is not the header of a backup", ErrFormat)
	}
	if h.Version != version {
		return h, nil, fmt.Errorf("%w: it has version %d of the format, written by Fantasia %s; want %d", ErrFormat, h.Version, h.Program,
			version)
	}
	return h, in, nil
}

// reader reads the lines of a backup and adds them up.
type reader struct {
	lines *bufio.Scanner
	sum   hash.Hash
	size  int64 // of the lines that were read, in bytes
	read  int   // how many lines that are
}

var errLong = fmt.Errorf("longer than %d MiB, as no line of a backup is", maxLine>>20)

// digest returns the sum of the lines that were read.
func (r *reader) digest() string { return hex.EncodeToString(r.sum.Sum(nil)) }

// next returns the next line, which is valid until the following call.
func (r *reader) next() ([]byte, error) {
	if more, err := r.lines.Scan(), r.lines.Err(); !more || err != nil {
		if err == nil {
			err = io.ErrUnexpectedEOF
		} else if errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("%w: line %d is %w", ErrDamaged, r.read+1, errLong)
		}
		return nil, fmt.Errorf("%w: it ends too early: %w", ErrDamaged, err)
	}
	text := r.lines.Bytes()
	r.read++
	r.size += int64(len(text)) + 1
	// The hash of a Go package never fails.
	_, _ = r.sum.Write(text)
	_, _ = r.sum.Write([]byte{'\n'})
	return text, nil
}

// end checks that nothing follows.
func (r *reader) end() error {
	if r.lines.Scan() {
		return fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	if err := r.lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
