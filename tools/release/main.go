// Command release makes Debian and RPM packages of what scripts/release has prepared, and
// lists the files of an RPM package where there is no rpm:
//
//	release package CONFIG DIR
//	release files PACKAGE
//
// CONFIG is a file of nfpm (https://nfpm.goreleaser.com/docs/configuration/), in which ${NAME}
// stands for variables of the environment. Everything has the time of SOURCE_DATE_EPOCH, so
// that the same files make the same packages.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/rpm"
	"github.com/sassoftware/go-rpmutils"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "package":
		return pack(args[1], args[2], stdout)
	case len(args) == 2 && args[0] == "files":
		return list(args[1], stdout)
	}
	return fmt.Errorf("the arguments are %q; want package CONFIG DIR, or files PACKAGE", args)
}

// pack writes a package of each format into dir and prints their paths.
func pack(config, dir string, stdout io.Writer) error {
	if os.Getenv("SOURCE_DATE_EPOCH") == "" {
		return errors.New("SOURCE_DATE_EPOCH is empty; want the time of the commit, in seconds since 1970")
	}
	read, err := nfpm.ParseFileWithEnvMapping(config, os.Getenv)
	if err != nil {
		return fmt.Errorf("read %s: %w", config, err)
	}
	for format, packager := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM} {
		info, err := read.Get(format)
		if err != nil {
			return fmt.Errorf("read what is of %s in %s: %w", format, config, err)
		}
		info = nfpm.WithDefaults(info)
		path := filepath.Join(dir, packager.ConventionalFileName(info))
		if err := write(path, func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return err
		}
		fmt.Fprintln(stdout, path)
	}
	return nil
}

// write writes a file, whole or not at all.
func write(path string, content func(io.Writer) error) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return fmt.Errorf("write the package: %w", err)
	}
	if err := errors.Join(content(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(path+".new")))
	}
	return os.Rename(path+".new", path)
}

// list prints the paths that an RPM package installs, one a line.
func list(path string, stdout io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the package: %w", err)
	}
	header, err := rpmutils.ReadHeader(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	files, err := header.GetFiles()
	if err != nil {
		return fmt.Errorf("read the files of %s: %w", path, err)
	}
	for _, file := range files {
		fmt.Fprintln(stdout, file.Name())
	}
	return nil
}
