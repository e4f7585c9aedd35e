// Package testenv runs real etcd and nats-server processes for tests. They are built
// once from the modules pinned in go.mod, listen on loopback, use temporary
// directories, and are killed with the test. Only tests may import it.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

const (
	etcdModule = "go.etcd.io/etcd/server/v3"
	natsModule = "github.com/nats-io/nats-server/v2"
	// buildTimeout limits a build with a cold cache on a slow machine.
	buildTimeout = 10 * time.Minute
)

// Build returns the path of a program from a module pinned in go.mod, or from a package
// of this module. Programs of other modules are built once and kept in the user's cache
// directory by version; those of this module are built into the test's temporary
// directory, with the flags of go build that are given.
func Build(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	root, err := moduleRoot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	version, err := goCommand(ctx, root, "list", "-f", "{{with .Module}}{{.Version}}{{end}}", pkg)
	if err != nil {
		t.Fatal(err)
	}
	if version == "" {
		out := filepath.Join(t.TempDir(), path.Base(pkg))
		if _, err := goCommand(ctx, root, slices.Concat([]string{"build", "-o", out}, flags, []string{pkg})...); err != nil {
			t.Fatal(err)
		}
		return out
	}
	out, err := buildOnce(ctx, root, pkg, version)
	if err != nil {
		t.Fatal(err)
	}
	return out
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

// buildOnce builds a program unless the cache holds it. Concurrent test processes wait
// for a single build.
func buildOnce(ctx context.Context, root, pkg, version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "fantasia-testenv")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache of test programs: %w", err)
	}
	out := filepath.Join(cache, strings.NewReplacer("/", "_", ".", "_").Replace(pkg)+"@"+version)
	lock := flock.New(out + ".lock")
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer func() { _ = lock.Close() }()
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	unfinished := out + ".new"
	if _, err := goCommand(ctx, root, "build", "-trimpath", "-o", unfinished, pkg); err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, out); err != nil {
		return "", fmt.Errorf("keep the test program: %w", err)
	}
	return out, nil
}

// goCommand returns the standard output of the go command.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
