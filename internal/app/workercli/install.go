package workercli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Copy this program into a directory",
		Long: `Copies this program, a static binary, to DIR/worker. Use it in an init container to
add the worker to a pod of another image; the worker's image contains no cp.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("got %d arguments; want one: worker install DIR", len(args))
			}
			return nil
		},
		// It has no flags, and the environment may hold those of a worker nearby.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("locate this program: %w", err)
			}
			return install(self, args[0])
		},
	}
}

// install copies a program to dir/worker, executable by everyone, in one step: readers
// see either the old file or the complete new one.
func install(program, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the directory: %w", err)
	}
	from, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer func() { _ = from.Close() }() // opened for reading only
	to, err := os.CreateTemp(dir, ".worker-*")
	if err != nil {
		return fmt.Errorf("create a file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	_, err = io.Copy(to, from)
	// Chmod is needed because the umask applies when the file is created.
	err = errors.Join(err, to.Chmod(0o755), to.Sync(), to.Close())
	if err != nil {
		return fmt.Errorf("copy this program to %s: %w", to.Name(), err)
	}
	if err := os.Rename(to.Name(), filepath.Join(dir, "worker")); err != nil {
		return fmt.Errorf("rename the copy: %w", err)
	}
	return nil
}
