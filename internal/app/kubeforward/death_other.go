//go:build !linux

package kubeforward

import "syscall"

// dieWithParent does nothing: other systems cannot.
func dieWithParent() *syscall.SysProcAttr { return nil }
