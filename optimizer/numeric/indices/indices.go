// Package indices has lists of the numbers of rows.
package indices

import "slices"

// Upto returns the numbers from 0 to n-1.
func Upto(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Sorted returns the numbers from 0 to n-1 in the order of compare. Equal ones are in ascending order.
func Sorted(n int, compare func(a, b int) int) []int {
	all := Upto(n)
	slices.SortStableFunc(all, compare)
	return all
}

// Pick returns the elements of a list at some places.
func Pick[T any](all []T, at []int) []T {
	some := make([]T, len(at))
	for k, i := range at {
		some[k] = all[i]
	}
	return some
}
