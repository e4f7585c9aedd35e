package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// template is a call that makes Cobra use text/template.
var template = regexp.MustCompile(`\.Set(Usage|Help|Version)Template\(`)

// Templates can call every method by its name, so the linker drops no method of a program that
// executes one: that makes kubeworker half as large again. Every program has a command line, so
// that must not use them.
func TestCommandLinesUseNoTemplates(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	read := 0
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if found := template.Find(content); found != nil {
				t.Errorf("%s calls %s…): set a function in place of a template", path, found)
			}
			read++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 {
		t.Errorf("read %d files, want all of the programs'", read)
	}
}
