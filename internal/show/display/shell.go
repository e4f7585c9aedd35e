package display

import "strings"

// Quoted quotes the words of a command for a POSIX shell, to copy and paste.
func Quoted(argv []string) []string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"
	words := make([]string, len(argv))
	for i, word := range argv {
		if words[i] = word; word == "" || strings.Trim(word, plain) != "" {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return words
}

// Line writes a command as a person types it in a POSIX shell.
func Line(argv []string) string { return strings.Join(Quoted(argv), " ") }
