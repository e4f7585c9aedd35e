package seal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/coordinator/seal"
)

func TestWhatIsSealedOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, value := rapid.String().Draw(t, "key"), rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		sealed := seal.Seal(key, value)
		if len(sealed) != len(value)+seal.Overhead {
			t.Fatalf("%d bytes became %d, want %d more", len(value), len(sealed), seal.Overhead)
		}
		opened, err := seal.Open(key, []byte(sealed))
		if err != nil || string(opened) != string(value) {
			t.Fatalf("opened %q, %v; want %q", opened, err, value)
		}
	})
}

// The form that the package's comment describes, made with the standard library alone.
func TestForm(t *testing.T) {
	sum := crc32.Checksum([]byte("/k\x00{}\n1."), crc32.MakeTable(crc32.Castagnoli))
	if got, want := seal.Seal("/k", []byte("{}")), fmt.Sprintf("{}\n1.%08x", sum); got != want {
		t.Errorf("sealed %q, want %q", got, want)
	}
}

// A CRC of 32 bits finds every flip of up to three bits in a record of this length, and
// every burst of up to 32 bits (Koopman, 32-bit cyclic redundancy codes, 2002); here each bit is
// flipped, and each end is cut off.
func TestDamageIsNoticed(t *testing.T) {
	const key = "/fantasia/v1/studies/1/trials/00000001"
	whole := seal.Seal(key, []byte(`{"number":1,"state":"COMPLETED"}`))
	for bit := range 8 * len(whole) {
		flipped := []byte(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		if value, err := seal.Open(key, flipped); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("with bit %d flipped it opens as %q, %v", bit, value, err)
		}
	}
	for n := range len(whole) {
		if value, err := seal.Open(key, []byte(whole[:n])); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("cut to %d bytes it opens as %q, %v", n, value, err)
		}
	}
	if _, err := seal.Open(strings.Replace(key, "00000001", "00000002", 1), []byte(whole)); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("under another trial's key: %v, want ErrDamaged", err)
	}
}

func TestUnknownFields(t *testing.T) {
	const key, text = "k", `{"known":1,"other":2}`
	var v struct {
		Known int `json:"known"`
	}
	if err := seal.Decode(key, []byte(seal.Seal(key, []byte(text))), &v); err == nil || !strings.Contains(err.Error(), "other") {
		t.Errorf("of this version: %v; want the unknown field", err)
	}
	later := text + fmt.Sprintf("\n%d.", seal.Form+1)
	later += fmt.Sprintf("%08x", crc32.Checksum([]byte(key+"\x00"+later), crc32.MakeTable(crc32.Castagnoli)))
	if err := seal.Decode(key, []byte(later), &v); err != nil || v.Known != 1 {
		t.Errorf("of a later version: %+v, %v; want the known field", v, err)
	}
	if err := seal.Decode(key, []byte(seal.Seal(key, []byte(`{"known":1}{}`))), &v); err == nil {
		t.Error("a record with something after its end was read")
	}
}

// record is as large as a usual trial's.
func record() (text []byte, v map[string]any) {
	v = map[string]any{"number": 17, "state": "COMPLETED", "point": map[string]any{"x": 0.25, "y": 3}, "logs": strings.Repeat("x", 700)}
	text, _ = json.Marshal(v) // never fails
	return text, v
}

func BenchmarkSeal(b *testing.B) {
	text, v := record()
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			_, _ = json.Marshal(v)
		}
	})
	b.Run("seal", func(b *testing.B) {
		for b.Loop() {
			_ = seal.Seal("/fantasia/v1/studies/1/trials/00000001", text)
		}
	})
	sealed := []byte(seal.Seal("k", text))
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, err := seal.Open("k", sealed); err != nil {
				b.Fatal(err)
			}
		}
	})
}
