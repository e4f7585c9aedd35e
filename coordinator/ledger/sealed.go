package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/seal"
)

// Every record passes through this file: put seals what is written, open and decode check what
// was read.

// put writes a record under a key, which includes the prefix.
func put(key string, value []byte) clientv3.Op { return clientv3.OpPut(key, seal.Seal(key, value)) }

// open returns a record's value. The error is a *Damaged.
func open(kv *mvccpb.KeyValue) ([]byte, error) {
	value, err := seal.Open(string(kv.Key), kv.Value)
	if err != nil {
		return nil, &Damaged{string(kv.Key), kv.ModRevision, err}
	}
	return value, nil
}

// decode reads a record. The error is a *Damaged.
func decode(kv *mvccpb.KeyValue, v any) error {
	if err := seal.Decode(string(kv.Key), kv.Value, v); err != nil {
		return &Damaged{string(kv.Key), kv.ModRevision, err}
	}
	return nil
}

// Valid returns why a key of an etcd that only Fantasia uses cannot have a value: it is not a key of the
// ledger's, or its checksum is another one.
func Valid(key, value []byte) error {
	if !strings.HasPrefix(string(key), DefaultPrefix) {
		return fmt.Errorf("it is not a key of Fantasia's, which begin with %s", DefaultPrefix)
	}
	if _, err := seal.Open(string(key), value); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), seal.ErrDamaged.Error()+": ")) // the caller says that it is damaged
	}
	return nil
}

// Damaged says which record cannot be read, and why. It is an ErrCorrupt.
type Damaged struct {
	Key string
	// Revision is the revision of etcd that has stored the record; 0 if it was not read from
	// etcd.
	Revision int64
	Cause    error
}

// Error names the record, its study and its trial.
func (d *Damaged) Error() string {
	text := ErrCorrupt.Error() + ": "
	if what := describe(d.Key); what != "" {
		text += what + ", "
	}
	text += d.Key
	if d.Revision > 0 {
		text += fmt.Sprintf(" at revision %d", d.Revision)
	}
	return text + ": " + d.Cause.Error()
}

// Is makes a Damaged an ErrCorrupt.
func (d *Damaged) Is(target error) bool { return errors.Is(ErrCorrupt, target) }

// Unwrap returns the cause.
func (d *Damaged) Unwrap() error { return d.Cause }

// describe says what a key's record is about; it returns an empty string for records of no
// study.
func describe(key string) string {
	if _, rest, ok := strings.Cut(key, "/"+studiesDir); ok {
		id, leaf, _ := strings.Cut(rest, "/")
		if number, ok := strings.CutPrefix(leaf, trialsDir); ok {
			return fmt.Sprintf("trial %s of study %s", trimmed(number), id)
		}
		return fmt.Sprintf("the %s of study %s", leaf, id)
	}
	if _, rest, ok := strings.Cut(key, "/"+curvesDir); ok {
		id, leaf, _ := strings.Cut(rest, "/")
		number, _, _ := strings.Cut(leaf, "/")
		return fmt.Sprintf("the measurements of trial %s of study %s", trimmed(number), id)
	}
	if _, name, ok := strings.Cut(key, "/"+namesDir); ok {
		return "the name of study " + name
	}
	return ""
}

// trimmed is a number without leading zeros.
func trimmed(number string) string {
	if n, err := strconv.Atoi(number); err == nil {
		return strconv.Itoa(n)
	}
	return number
}
