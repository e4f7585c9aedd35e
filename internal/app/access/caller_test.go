package access_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/app/access"
)

// A token's file is read again for each request, and must hold a token alone.
func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := access.Caller{TokenFile: file}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that is missing: %v", err)
	}
	for _, text := range []string{"first\n", "renewed"} {
		write(text)
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		if got, want := c.Bearer(), strings.TrimSpace(text); got != want {
			t.Errorf("the token is %q, want %q", got, want)
		}
	}
	for text, want := range map[string]string{"": "has 0 words", "two words": "has 2 words", "a\nb\n": "has 2 words"} {
		write(text)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a file of %q: %v, want %q", text, err, want)
		}
	}
	both := access.Caller{Token: "a", TokenFile: file}
	if err := both.Check(); err == nil || !strings.Contains(err.Error(), "set only one") {
		t.Errorf("two tokens: %v", err)
	}
	if c := (access.Caller{Token: "a"}); c.Check() != nil || c.Bearer() != "a" {
		t.Errorf("a token alone: %v, %q", c.Check(), c.Bearer())
	}
}
