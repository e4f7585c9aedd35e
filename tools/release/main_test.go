package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const config = `name: probe
arch: ${ARCH}
version: ${VERSION}
maintainer: The Fantasia authors <fantasia-hpo@users.noreply.github.com>
description: A probe
rpm: {buildhost: localhost}
contents:
  - {src: "${DIR}/program", dst: /usr/bin/probe, expand: true, file_info: {mode: 0755}}
  - {src: "${DIR}/settings", dst: /etc/probe.env, type: config|noreplace, expand: true}
`

// packed makes the packages of a program in a folder and returns their bytes by name.
func packed(t *testing.T, modified time.Time) (string, map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DIR", dir)
	for name, text := range map[string]string{"program": "#!/bin/sh\necho probe\n", "settings": "A=b\n", "nfpm.yaml": config} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := run([]string{"package", filepath.Join(dir, "nfpm.yaml"), dir}, &out); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for path := range strings.FieldsSeq(out.String()) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = content
	}
	return dir, files
}

func TestPackages(t *testing.T) {
	t.Setenv("ARCH", "arm64")
	t.Setenv("VERSION", "1.2.3-rc.1")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	released := time.Unix(1_700_000_000, 0)
	dir, first := packed(t, released)
	// Debian and RPM sort a ~ before the version itself, so that 1.2.3 replaces its candidate.
	const debian, rpm = "probe_1.2.3~rc.1_arm64.deb", "probe-1.2.3~rc.1-1.aarch64.rpm"
	if len(first) != 2 || first[debian] == nil || first[rpm] == nil {
		t.Fatalf("the packages are %d; want %s and %s", len(first), debian, rpm)
	}
	var out bytes.Buffer
	if err := run([]string{"files", filepath.Join(dir, rpm)}, &out); err != nil {
		t.Fatal(err)
	}
	paths := strings.Fields(out.String())
	if slices.Sort(paths); !slices.Equal(paths, []string{"/etc/probe.env", "/usr/bin/probe"}) {
		t.Errorf("the RPM package installs %q", paths)
	}
	t.Setenv("TZ", "Asia/Tokyo")
	_, second := packed(t, released)
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s is another one the second time", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	for want, args := range map[string][]string{
		"want package CONFIG DIR":    {"package"},
		"SOURCE_DATE_EPOCH is empty": {"package", "nfpm.yaml", "."},
		"open the package":           {"files", filepath.Join(t.TempDir(), "nothing.rpm")},
	} {
		if err := run(args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…", args, err, want)
		}
	}
}
