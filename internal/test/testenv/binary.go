// Package testenv runs real etcd and nats-server processes for tests. They are built
// from the modules pinned in go.mod, listen on loopback, use temporary
// directories, and are killed with the test. Only tests may import it.
package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	etcdModule = "go.etcd.io/etcd/server/v3"
	natsModule = "github.com/nats-io/nats-server/v2"
	// buildTimeout limits a build with a cold cache on a slow machine.
	buildTimeout = 10 * time.Minute
)

// programs has a function for each program, which builds it the first time that it is called.
var programs sync.Map

// Build returns the path of a program from a module pinned in go.mod, or from a package
// of this module, built with the flags of go build that are given. Go keeps it in its build
// cache, so that it is linked again only after a change.
func Build(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	// The program is handed to echo, which says where it is.
	return once(t, slices.Concat([]string{"run", "-trimpath", "-exec=echo"}, flags, []string{pkg})...)
}

// Tool returns the path of a program from a package that tools/MODULE/go.mod pins. `go tool` ignores
// -trimpath, so it would compile again what the programs and the tools share.
func Tool(t testing.TB, module, pkg string) string {
	t.Helper()
	return Build(t, pkg, "-modfile=tools/"+module+"/go.mod")
}

// once returns the path of a program, which the go command prints last. It runs the command
// once in each test process.
func once(t testing.TB, args ...string) string {
	t.Helper()
	f, _ := programs.LoadOrStore(strings.Join(args, " "), sync.OnceValues(func() (string, error) { return locate(args) }))
	path, err := f.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func locate(args []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	// A program that was not in the cache is where it was linked, which is gone afterwards.
	for range 2 {
		out, err := goCommand(ctx, root, args...)
		if err != nil {
			return "", err
		}
		path := out[strings.LastIndex(out, "\n")+1:]
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("go %s: the build cache does not keep the program", strings.Join(args, " "))
}

func moduleRoot(ctx context.Context) (string, error) {
	mod, err := goCommand(ctx, ".", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	if mod == "" || mod == os.DevNull {
		return "", errors.New("find go.mod: run the tests inside the module")
	}
	return filepath.Dir(mod), nil
}

// goCommand returns the standard output of the go command.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Python returns the interpreter of Python with the packages of the client's tests, which
// make test-client names in PYTHON.
func Python() string { return cmp.Or(os.Getenv("PYTHON"), "python3") }
