package kubeforward

import "syscall"

// dieWithParent makes the kernel kill a program when the thread that has started it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
