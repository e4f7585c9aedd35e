// Package cmp stands in for github.com/google/go-cmp/cmp in the programs as they are shipped.
//
// There, only etcd's storage compares with it, when it checks itself, which it does if ETCD_VERIFY
// is set. The original calls methods by names that are not known before, so that Go's linker keeps
// every exported method of a program: an eighth of fantasia. Tests have the original.
package cmp

import (
	"fmt"
	"reflect"
)

// Option would change how values are compared. There are none.
type Option interface{ unknown() }

// Diff returns "" if x and y are equal as reflect.DeepEqual tells, and both of them otherwise.
func Diff(x, y any, _ ...Option) string {
	if reflect.DeepEqual(x, y) {
		return ""
	}
	return fmt.Sprintf("- %#v\n+ %#v\n", x, y)
}
