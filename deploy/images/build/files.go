package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is whom the images run as: the number that distroless images call nonroot.
const user = 65532

// file is one of an image's files or, without content, directories.
type file struct {
	path    string // absolute
	mode    fs.FileMode
	owner   int // user and group
	content []byte
}

// files is an image's content, in layers that change ever more often, so that a
// new version of a program shares what it can with the one before.
type files struct {
	system, own []file
	bill        []byte
	version     string // of the program
}

// files builds the program and gathers what its image holds.
func (o *options) files(ctx context.Context, p program, dir string) (files, error) {
	path, info, err := o.build(ctx, p, p.pkg, dir)
	if err != nil {
		return files{}, err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return files{}, fmt.Errorf("read the program: %w", err)
	}
	bill, err := o.bill(p, info, sha256.Sum256(binary))
	if err != nil {
		return files{}, err
	}
	f := files{system: system(), bill: bill, version: o.softwareVersion(p, info)}
	f.own = []file{{path: "/usr/local/bin/" + p.binary, mode: 0o755, content: binary}}
	for _, pkg := range p.with {
		more, _, err := o.build(ctx, p, pkg, dir)
		if err != nil {
			return files{}, err
		}
		if binary, err = os.ReadFile(more); err != nil {
			return files{}, fmt.Errorf("read the program: %w", err)
		}
		f.own = append(f.own, file{path: "/usr/local/bin/" + filepath.Base(more), mode: 0o755, content: binary})
	}
	if p.state != "" {
		f.own = append(f.own, file{path: p.state, mode: fs.ModeDir | 0o700, owner: user})
	}
	f.own = append(f.own, file{path: "/usr/share/sbom/" + p.name + ".spdx.json", mode: 0o644, content: bill})
	return f, nil
}

// system is what a program expects of any machine: names for its user, a place
// for temporary files, and the certificates that Mozilla trusts.
func system() []file {
	return []file{
		{path: "/etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", user)},
		{path: "/etc/passwd", mode: 0o644, content: fmt.Appendf(nil,
			"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%[1]d:%[1]d:nonroot:/tmp:/sbin/nologin\n", user)},
		{path: "/etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		{path: "/tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// certificates are the roots of the module that go.mod pins, not this machine's.
// Those that are trusted with a condition are left out: a file cannot express it.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// A buffer takes everything, and a block without headers has no error.
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}

// layer writes files as a tar with the directories above them.
func layer(all []file, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{}
	for _, f := range all {
		for _, dir := range parents(f.path) {
			if !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(header(file{path: dir, mode: fs.ModeDir | 0o755}, modified)); err != nil {
					return nil, fmt.Errorf("write %s: %w", dir, err)
				}
			}
		}
		made[f.path] = true
		if err := w.WriteHeader(header(f, modified)); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.path, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end the layer: %w", err)
	}
	return out.Bytes(), nil
}

func header(f file, modified time.Time) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.path, "/"), Size: int64(len(f.content)), ModTime: modified,
		Mode: int64(f.mode.Perm()), Uid: f.owner, Gid: f.owner, Format: tar.FormatPAX,
	}
	if f.mode.IsDir() {
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	}
	if f.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	return h
}

// parents are the directories above a path, the outermost first, without the root.
func parents(path string) []string {
	var all []string
	for i, c := range path {
		if c == '/' && i > 0 {
			all = append(all, path[:i])
		}
	}
	return all
}

// writeTo writes the files below a directory, for a build that copies them into
// an image; owners are changed where the caller may.
func (f files) writeTo(dir string) error {
	for _, x := range append(f.system, f.own...) {
		path := filepath.Join(dir, x.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make %s: %w", filepath.Dir(path), err)
		}
		var err error
		if x.mode.IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, x.content, x.mode.Perm())
		}
		if err == nil {
			err = os.Chmod(path, x.mode&(fs.ModePerm|fs.ModeSticky))
		}
		if err == nil && x.owner != 0 {
			if err = os.Chown(path, x.owner, x.owner); errors.Is(err, fs.ErrPermission) {
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}
