package codec_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/coordinator/codec"
)

// Every text comes back, whether or not it resembles the dictionary, also if several are packed and
// unpacked at once.
func TestTextsComeBack(t *testing.T) {
	c := codec.New([]byte(`{"number":1,"state":"completed"}`))
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 8).Draw(t, "texts")
		back := make([][]byte, len(texts))
		errs := make([]error, len(texts))
		var all sync.WaitGroup
		for i, text := range texts {
			all.Go(func() { back[i], errs[i] = c.Unpack(c.Pack(text)) })
		}
		all.Wait()
		for i, text := range texts {
			if errs[i] != nil || !bytes.Equal(back[i], text) {
				t.Errorf("%q came back as %q with %v", text, back[i], errs[i])
			}
		}
	})
}

// What the dictionary has takes hardly any bytes.
func TestDictionaryCounts(t *testing.T) {
	text := []byte(`{"number":1,"state":"completed","point":{"x":0.25},"worker":"local"}`)
	with, without := len(codec.New(text).Pack(text)), len(codec.New(nil).Pack(text))
	if with > 10 || without < 50 {
		t.Errorf("%d bytes with the dictionary and %d without", with, without)
	}
}

// Bytes that are not of Pack are an error, after which others are unpacked as before.
func TestDamagedTextIsRefused(t *testing.T) {
	c := codec.New(nil)
	packed := c.Pack([]byte(strings.Repeat("text ", 100)))
	if text, err := c.Unpack(packed[:len(packed)/2]); err == nil {
		t.Errorf("half of a text was unpacked as %q", text)
	}
	if text, err := c.Unpack(packed); err != nil || len(text) != 500 {
		t.Errorf("unpacked %q with %v", text, err)
	}
}
