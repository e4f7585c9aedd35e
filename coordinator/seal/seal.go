// Package seal gives each value in etcd a checksum, so that a damaged record is noticed when it is
// read. etcd has checksums in its write-ahead log, but none in its database: a single flipped bit
// there would be read as another value.
//
// A sealed value is the value, a line feed, the version of the records' form, a dot, and
// the CRC-32C (Castagnoli) of the key and all that precedes the checksum, as eight hexadecimal digits. The
// checksum includes the key, so that a record that appears under another key is noticed too.
package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

// Form is the version of the records' form. A release that adds a field to a record MUST raise it.
// Decode refuses unknown fields in records of this form, and ignores those that a later
// version has written.
const Form = 1

// Overhead is the number of bytes that Seal adds to a value.
const Overhead = len("\n1.01234567")

// ErrDamaged means that a value is not what was stored under its key.
var ErrDamaged = errors.New("damaged")

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	ending     = []byte("\n" + strconv.Itoa(Form) + ".")
)

// Seal returns a value with its checksum, to be stored under a key.
func Seal(key string, value []byte) string {
	sum := crc32.Update(keySum(key), castagnoli, value)
	sum = crc32.Update(sum, castagnoli, ending)
	var b strings.Builder
	b.Grow(len(value) + Overhead)
	b.Write(value)
	b.Write(ending)
	text := hexadecimal(sum)
	b.Write(text[:])
	return b.String()
}

// hexadecimal is a checksum as text.
func hexadecimal(sum uint32) (text [8]byte) {
	for i := range text {
		text[i] = "0123456789abcdef"[sum>>(28-4*i)&15]
	}
	return text
}

// keySum is the checksum of a key. No key contains the byte that ends it.
func keySum(key string) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, []byte(key)), castagnoli, []byte{0})
}

// Open returns the value that was sealed, which shares memory with the sealed one. The error
// wraps ErrDamaged.
func Open(key string, sealed []byte) ([]byte, error) {
	value, _, err := open(key, sealed)
	return value, err
}

// open also returns the version of the record's form.
func open(key string, sealed []byte) (value []byte, form int, err error) {
	at := bytes.LastIndexByte(sealed, '\n')
	if at < 0 {
		return nil, 0, fmt.Errorf("%w: it has no checksum", ErrDamaged)
	}
	version, want, found := bytes.Cut(sealed[at+1:], []byte{'.'})
	if !found || len(want) != 8 {
		return nil, 0, fmt.Errorf("%w: it ends with %q, which is no checksum", ErrDamaged, clip(sealed[at+1:]))
	}
	is := hexadecimal(crc32.Update(keySum(key), castagnoli, sealed[:len(sealed)-len(want)]))
	if !bytes.Equal(is[:], want) {
		return nil, 0, fmt.Errorf("%w: its checksum is %s, want %q", ErrDamaged, is, want)
	}
	if form, err = strconv.Atoi(string(version)); err != nil || form < 1 {
		return nil, 0, fmt.Errorf("%w: its form is %q, want a version such as %d", ErrDamaged, version, Form)
	}
	return sealed[:at], form, nil
}

// clip shortens what an error quotes.
func clip(text []byte) []byte { return text[:min(len(text), 20)] }

// Decode opens a sealed value and decodes it as JSON. The error wraps ErrDamaged if the checksum is
// wrong. Unknown fields are an error, unless a later version of Fantasia has written the record.
func Decode(key string, sealed []byte, v any) error {
	value, form, err := open(key, sealed)
	if err != nil {
		return err
	}
	if form > Form {
		return json.Unmarshal(value, v)
	}
	return Strict(value, v)
}

// Strict decodes JSON of this version: unknown fields are an error. Types that decode themselves
// decide for their own fields.
func Strict(value []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}
