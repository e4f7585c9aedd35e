package tokenfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/base/tokenfile"
)

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if _, err := tokenfile.Read(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
	for text, want := range map[string]struct{ token, err string }{
		"secret":      {token: "secret"},
		" secret\r\n": {token: "secret"},
		"":            {err: file + " has 0 words; want a token alone"},
		"my secret":   {err: file + " has 2 words; want a token alone"},
		"my\nsecret":  {err: file + " has 2 words; want a token alone"},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := tokenfile.Read(file)
		if got != want.token || (err == nil) != (want.err == "") || err != nil && err.Error() != want.err {
			t.Errorf("%q: the token %q and %v, want %+v", text, got, err, want)
		}
	}
}

// Spaces and line ends around a token are not part of it, and control characters inside it are refused.
func TestTrim(t *testing.T) {
	for given, want := range map[string]string{"secret": "secret", "secret\n": "secret", " secret\r\n": "secret", "": ""} {
		if got, err := tokenfile.Trim(given); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"my\nsecret", "my\x00secret", "my\x7fsecret"} {
		if got, err := tokenfile.Trim(given); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %q, %v; want an error without its text", given, got, err)
		}
	}
}
