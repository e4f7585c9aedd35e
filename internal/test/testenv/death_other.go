//go:build !linux

package testenv

import "syscall"

// dieWithParent has no effect: only Linux ties a child's life to its parent's.
func dieWithParent() *syscall.SysProcAttr { return nil }
