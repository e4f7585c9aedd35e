// Package check collects the problems of a study, with the place of each in its file,
// and has small helpers for the packages that check parts of a study.
package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// DidYouMean returns ` (did you mean "x"?)` for the candidate nearest to the word, or
// "" if none is near. For a boolean it says which name may be meant: see study.BooleanWord.
func DidYouMean(word string, candidates []string) string {
	if word == "true" || word == "false" {
		for _, candidate := range candidates {
			if value, ok := study.BooleanWord(candidate); ok && strconv.FormatBool(value) == word {
				return fmt.Sprintf(" (did you mean %[1]q? A tool has read %[1]s as a boolean: put %[1]q in quotes)", candidate)
			}
		}
	}
	best, distance := "", len(word)/3+2
	for _, candidate := range candidates {
		if d := editDistance(strings.ToLower(word), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" || len(word) > 100 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance returns the Levenshtein distance of a and b, in bytes.
func editDistance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// IsLetter reports whether c is a letter from a to z or A to Z.
func IsLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// IsDigit reports whether c is a digit from 0 to 9.
func IsDigit(c rune) bool { return c >= '0' && c <= '9' }
