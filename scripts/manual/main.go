// Command manual writes the man pages of all programs, and their completions for bash, zsh
// and fish, as packages and archives have them:
//
//	DIR/man1/fantasia-study-list.1
//	DIR/completions/bash/fantasia, zsh/_fantasia, fish/fantasia.fish
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatorcli"
	"github.com/fantasia-hpo/fantasia/internal/app/kubeworkercli"
	"github.com/fantasia-hpo/fantasia/internal/app/workercli"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

func main() {
	lifecycle.Main("manual", func(context.Context) error {
		return run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH")) //nolint:contextcheck // the commands are only described
	})
}

func run(args []string, epoch string) error {
	flags := flag.NewFlagSet("manual", flag.ContinueOnError)
	out := flags.String("out", "bin/manual", "directory to write to")
	version := flags.String("version", "dev", "version of the programs")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	date := time.Now()
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH is %q; want seconds since 1970", epoch)
		}
		date = time.Unix(seconds, 0)
	}
	return write(*out, *version, date.UTC())
}

// programs returns the root commands of all programs; the last one is the plugin of kubectl.
func programs(version string) []*cobra.Command {
	all := []*cobra.Command{
		cli.New(cli.Options{Version: version, Stdin: os.Stdin, Stdout: io.Discard, Stderr: io.Discard}),
		coordinatorcli.New(version, io.Discard),
		workercli.New(version, io.Discard),
		kubeworkercli.New(version, io.Discard),
		cli.New(cli.Options{Version: version, Stdin: os.Stdin, Stdout: io.Discard, Stderr: io.Discard, Plugin: true}),
	}
	// This default is the name of the machine that builds.
	if f := all[1].Flags().Lookup("name"); f != nil {
		f.DefValue, f.Usage = "", f.Usage+" (default: the machine's)"
	}
	for _, c := range all {
		c.DisableAutoGenTag = true // it has the date of the build
	}
	return all
}

// write writes the pages and completions below dir. The same version and date make the
// same bytes on any machine.
func write(dir, version string, date time.Time) error {
	man, completions := filepath.Join(dir, "man1"), filepath.Join(dir, "completions")
	for _, d := range []string{man, filepath.Join(completions, "bash"), filepath.Join(completions, "zsh"),
		filepath.Join(completions, "fish")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("create the directory: %w", err)
		}
	}
	for _, c := range programs(version) {
		header := &doc.GenManHeader{Section: "1", Date: &date, Source: "Fantasia " + version, Manual: "Fantasia"}
		if err := doc.GenManTree(c, header, man); err != nil {
			return fmt.Errorf("write the man pages of %s: %w", c.Name(), err)
		}
		if _, display := c.Annotations[cobra.CommandDisplayNameAnnotation]; display {
			continue // kubectl completes its plugins in a way of its own
		}
		name := c.Name()
		err := errors.Join(
			c.GenBashCompletionFileV2(filepath.Join(completions, "bash", name), true),
			c.GenZshCompletionFile(filepath.Join(completions, "zsh", "_"+name)),
			c.GenFishCompletionFile(filepath.Join(completions, "fish", name+".fish"), true))
		if err != nil {
			return fmt.Errorf("write the completions of %s: %w", name, err)
		}
	}
	return nil
}
