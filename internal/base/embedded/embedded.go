// Package embedded runs etcd and NATS inside this process, for a study on one machine.
// Neither opens a network port: etcd listens on a unix socket in a directory that only
// this user may enter, NATS does not listen at all. Both keep their data on disk and
// find it again when started in the same directory.
package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxSocketPath is the longest path of a unix socket on Linux, without its
// final zero byte (sun_path in unix(7)).
const maxSocketPath = 107

// runtimePrefix is the prefix of the names of runtime directories.
const runtimePrefix = "fantasia-"

// closeTimeout limits how long a server may take to close.
const closeTimeout = 15 * time.Second

// bounded closes a server. If that takes too long, its lock MUST be kept, as the data may
// still be written.
func bounded(server string, closing func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		closing()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(closeTimeout):
		return fmt.Errorf("close %s: not done after %s", server, closeTimeout)
	}
}

// socketNote is a file in the data directory that names the runtime directory, so that
// the next start can remove what a killed process left behind.
const socketNote = "socket"

// sweep removes the runtime directory that the last owner of dir left behind. It only
// removes a socket of that name and an empty directory.
func sweep(dir, socket string) {
	b, err := os.ReadFile(filepath.Join(dir, socketNote))
	if err != nil || !strings.HasPrefix(filepath.Base(string(b)), runtimePrefix) {
		return
	}
	// They do not exist if the last process closed properly.
	_ = os.Remove(filepath.Join(string(b), socket))
	_ = os.Remove(string(b))
}

// runtimeDir creates a new directory for a socket that only this user may enter, in the
// more volatile of the usual places whose path is short enough.
func runtimeDir(socket string) (string, error) {
	var errs []error
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if base == "" {
			continue
		}
		dir, err := os.MkdirTemp(base, runtimePrefix)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		path, err := filepath.Abs(filepath.Join(dir, socket))
		if err == nil && len(path) <= maxSocketPath {
			return filepath.Dir(path), nil
		}
		errs = append(errs, err, fmt.Errorf("socket path %s is longer than %d bytes", path, maxSocketPath), os.Remove(dir))
	}
	return "", fmt.Errorf("create a runtime directory (set TMPDIR to a short, writable path): %w", errors.Join(errs...))
}
