package slurm

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// network are the file systems of other machines whose locks or mapped files are not safe enough for the
// databases of a coordinator, by their numbers in statfs(2).
var network = map[int64]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x5346414f: "AFS", 0x01021997: "9P", 0x65735546: "FUSE",
}

// remoteFileSystem returns the kind of the network file system that holds a path, or will; empty for
// others.
func remoteFileSystem(path string) (string, error) {
	for {
		var s syscall.Statfs_t
		err := syscall.Statfs(path, &s)
		if err == nil {
			return network[int64(s.Type)&0xffffffff], nil //nolint:unconvert // smaller on other architectures
		}
		if above := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && above != path {
			path = above
			continue
		}
		return "", err
	}
}
