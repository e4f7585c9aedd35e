// Command images makes Fantasia's container images without an engine: it builds
// each program, static, from the modules that go.mod pins, and writes it with CA
// certificates and a bill of materials into a docker-archive, which containerd,
// Docker and Podman load. The same sources, version and Go make the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		stop()
		os.Exit(1)
	}
}

// options say what to make, and from what.
type options struct {
	root       string // of the repository
	out        string // directory of the archives
	rootfs     string // instead of archives, a directory for one image's files
	arch       string
	repository string // what every image's name begins with
	version    string
	also       string // another tag, or empty
	revision   string
	created    time.Time
}

func run(ctx context.Context, args []string) error {
	var o options
	var billOf, bill string
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "../../..", "the repository")
	flags.StringVar(&o.out, "out", "../../../bin/images", "directory for the archives and bills of materials")
	flags.StringVar(&o.rootfs, "rootfs", "", "write the files of one image below this directory instead")
	flags.StringVar(&o.arch, "arch", "amd64", "architecture of the images: amd64 or arm64")
	flags.StringVar(&o.repository, "repository", "ghcr.io/fantasia-hpo", "what the images' names begin with")
	flags.StringVar(&o.version, "version", "dev", "version of the programs, and tag of the images")
	flags.StringVar(&o.also, "also", "", "another tag of the images in the archives")
	flags.StringVar(&o.revision, "revision", "", "git revision of the sources (default: HEAD's, if there is one)")
	flags.StringVar(&billOf, "bill-of", "", "only list what this program was built from, one of ours for any system; see --bill")
	flags.StringVar(&bill, "bill", "", "file for the bill of materials of --bill-of")
	epoch := flags.String("epoch", os.Getenv("SOURCE_DATE_EPOCH"),
		"time of the images, in seconds since 1970 (default: SOURCE_DATE_EPOCH, or HEAD's time)")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	if err := o.complete(ctx, *epoch); err != nil {
		return err
	}
	if billOf != "" {
		return o.writeBill(billOf, bill)
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	if o.rootfs != "" && len(chosen) != 1 {
		return fmt.Errorf("--rootfs takes the files of one image, not of %d", len(chosen))
	}
	for _, p := range chosen {
		if err := o.make(ctx, p); err != nil {
			return fmt.Errorf("image %s: %w", p.name, err)
		}
	}
	return nil
}

// complete fills in what git knows and checks the rest.
func (o *options) complete(ctx context.Context, epoch string) error {
	if o.arch != "amd64" && o.arch != "arm64" {
		return fmt.Errorf("--arch is %q, want amd64 or arm64", o.arch)
	}
	git := func(args ...string) string {
		// Without git or a repository the defaults remain.
		out, _ := exec.CommandContext(ctx, "git", append([]string{"-C", o.root}, args...)...).Output()
		return strings.TrimSpace(string(out))
	}
	if o.revision == "" {
		o.revision = git("rev-parse", "HEAD")
	}
	if epoch == "" {
		epoch = git("log", "-1", "--format=%ct")
	}
	if epoch == "" {
		epoch = "0"
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("--epoch is %q, want seconds since 1970", epoch)
	}
	o.created = time.Unix(seconds, 0).UTC()
	return nil
}

// make writes one image, as files or as an archive beside its bill of materials.
func (o *options) make(ctx context.Context, p program) error {
	dir, err := os.MkdirTemp("", "fantasia-image-*")
	if err != nil {
		return fmt.Errorf("make a directory for the build: %w", err)
	}
	f, err := o.files(ctx, p, dir)
	if err == nil && o.rootfs != "" {
		err = f.writeTo(o.rootfs)
	} else if err == nil {
		err = o.archive(p, f)
	}
	return errors.Join(err, os.RemoveAll(dir))
}
