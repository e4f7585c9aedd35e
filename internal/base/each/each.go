// Package each says what becomes of each element of a list, where a loop would say no more.
package each

import "strings"

// Of returns what f returns for each element.
func Of[A, B any](list []A, f func(A) B) []B {
	all := make([]B, len(list))
	for i, v := range list {
		all[i] = f(v)
	}
	return all
}

// Join joins the texts that f returns for each element.
func Join[A any](list []A, separator string, f func(A) string) string {
	return strings.Join(Of(list, f), separator)
}
