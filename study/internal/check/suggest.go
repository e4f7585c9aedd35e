// Package check collects what is wrong with a study, with the place of each
// problem in its file, and has the small helpers of whoever checks a part of it.
package check

import (
	"fmt"
	"strings"
)

// DidYouMean is ` (did you mean "x"?)` for the candidate that is nearest to the
// word, and nothing where none is near.
func DidYouMean(word string, candidates []string) string {
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

// editDistance is the Levenshtein distance of a and b, by bytes.
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

// IsLetter reports whether c is one of a to z and A to Z.
func IsLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// IsDigit reports whether c is one of 0 to 9.
func IsDigit(c rune) bool { return c >= '0' && c <= '9' }
