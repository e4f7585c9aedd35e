// Package tokenfile reads the file of a bearer token.
package tokenfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
)

// Read returns the token in a file that must hold nothing else but spaces and line ends. The error
// names the file, but never shows its text.
func Read(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err // it names the file
	}
	words := strings.Fields(string(text))
	if len(words) != 1 {
		return "", fmt.Errorf("%s has %d words; want a token alone", path, len(words))
	}
	return Trim(words[0])
}

// Trim returns a token without the spaces and line ends around it, which come with it from a file or a command's output.
// It refuses a token that cannot be in a header of HTTP, and never shows its text.
func Trim(token string) (string, error) {
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return unicode.IsControl(r) }) {
		return "", errors.New("the token has a line end or another control character in it; want a token alone")
	}
	return token, nil
}
