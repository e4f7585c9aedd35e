package architecture

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxLine is how many characters a line of Go may have. A tab is one.
const maxLine = 140

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// TestLinesAreShort holds that no line is longer than maxLine. What is between backquotes does not
// count, since nothing can break it, and generated files are as they are.
func TestLinesAreShort(t *testing.T) {
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name != ".." && strings.HasPrefix(name, ".") || name == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil || generated.Match(source) {
			return err
		}
		line := 0
		for text := range strings.Lines(withoutRaw(source)) {
			line++
			if n := utf8.RuneCountInString(strings.TrimSuffix(text, "\n")); n > maxLine && !strings.HasPrefix(text, "//go:") {
				t.Errorf("%s:%d has %d characters, at most %d are accepted", path, line, n, maxLine)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// withoutRaw returns a file in which raw strings have only their line breaks.
func withoutRaw(source []byte) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, 0)
	kept := bytes.Clone(source)
	var raw [][2]int
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			break
		}
		if kind == token.STRING && text[0] == '`' {
			from := file.Offset(pos) + 1
			raw = append(raw, [2]int{from, from + bytes.IndexByte(source[from:], '`')})
		}
	}
	for i := len(raw) - 1; i >= 0; i-- {
		from, to := raw[i][0], raw[i][1]
		breaks := bytes.Repeat([]byte("\n"), bytes.Count(source[from:to], []byte("\n")))
		kept = append(kept[:from:from], append(breaks, kept[to:]...)...)
	}
	return string(kept)
}
