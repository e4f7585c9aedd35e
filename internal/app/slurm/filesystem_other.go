//go:build !linux

package slurm

// remoteFileSystem knows no file systems here: Slurm runs on Linux.
func remoteFileSystem(string) (string, error) { return "", nil }
