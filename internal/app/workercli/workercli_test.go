package workercli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A wrong command line is refused before anything starts, with the flag's name.
func TestWrongFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"start it with --allow-study-commands, or with a command of its own after --": {"--nats", "nats://localhost:1"},
		"--slots is 0; want 1 or more":  {"--slots", "0", "--", "true"},
		"--slots is -1; want 1 or more": {"sidecar", "--slots", "-1"},
		`--keep-trials is "10GB"; want a number of bytes with Ki, Mi, Gi or Ti, such as 10Gi`: {"--keep-trials", "10GB", "--", "true"},
		"which is not a directory": {"--state", file, "--", "true"},
	} {
		cmd := New("dev", io.Discard)
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…", args, err, want)
		}
	}
}

func TestInstall(t *testing.T) {
	program, dir := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "new", "directory")
	for _, content := range []string{"one", "another, longer one"} { // the second replaces the first
		if err := os.WriteFile(program, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := install(program, dir); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != 1 || entries[0].Name() != "worker" {
			t.Fatalf("the directory holds %v, want worker alone", entries)
		}
		got, err := os.ReadFile(filepath.Join(dir, "worker"))
		if err != nil {
			t.Fatal(err)
		}
		info, err := entries[0].Info()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != content || info.Mode() != 0o755 {
			t.Errorf("worker is %q with mode %v, want %q with -rwxr-xr-x", got, info.Mode(), content)
		}
	}
}

func TestInstallLeavesNothingBehindWhereItFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "worker"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := install(os.Args[0], dir); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v), want what it held", entries, err)
	}
}
