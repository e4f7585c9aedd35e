// Package tokenfile reads the file of a bearer token.
package tokenfile

import (
	"fmt"
	"os"
	"strings"
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
	return words[0], nil
}
