package record_test

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// TestNewID holds the form of an id. The ULID specification's own example,
// 01ARZ3NDEKTSV4RRFFQ69G5FAV, begins with the time 1469922850259.
func TestNewID(t *testing.T) {
	at := time.UnixMilli(1469922850259)
	id := record.NewID(bytes.NewReader(make([]byte, 10)), at)
	if want := "01arz3ndek" + "0000000000000000"; id != want {
		t.Errorf("NewID = %s, want %s", id, want)
	}
	if !regexp.MustCompile(`^[0-9a-z]{26}$`).MatchString(id) {
		t.Errorf("%s is not 26 lower-case letters and digits", id)
	}
	later := record.NewID(bytes.NewReader(bytes.Repeat([]byte{1}, 10)), at.Add(time.Millisecond))
	if later <= id {
		t.Errorf("%s does not sort after %s", later, id)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic without entropy")
		}
	}()
	record.NewID(bytes.NewReader(nil), at)
}
