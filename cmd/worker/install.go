package main

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
		Long: `Copies this program, which is static, to DIR/worker. An init container puts it
so beside a training program in another image: an image with nothing but the
worker has no cp.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("directories are %q; want one: worker install DIR", args)
			}
			return nil
		},
		// Its flags are none, and the environment may hold those of the worker beside.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			return install(self, args[0])
		},
	}
}

// install copies a program to dir/worker, for everybody to run, in one step:
// whoever looks sees the old one, or the whole new one.
func install(program, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	from, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("read this program: %w", err)
	}
	defer func() { _ = from.Close() }() // only read
	to, err := os.CreateTemp(dir, ".worker-*")
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	_, err = io.Copy(to, from)
	// The mask does not count for a file that has its name already.
	err = errors.Join(err, to.Chmod(0o755), to.Sync(), to.Close())
	if err != nil {
		return fmt.Errorf("copy this program to %s: %w", to.Name(), err)
	}
	if err := os.Rename(to.Name(), filepath.Join(dir, "worker")); err != nil {
		return fmt.Errorf("give the copy its name: %w", err)
	}
	return nil
}
