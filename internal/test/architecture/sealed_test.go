package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// sealers are the files that may write to etcd and read what is there: they seal each record and
// check its seal (coordinator/seal).
var sealers = map[string]bool{
	"coordinator/ledger/sealed.go":     true,
	"coordinator/election/election.go": true,
	"coordinator/election/term.go":     true,
}

// Every record goes through the seal: no other file puts a key, or looks at a key's value.
func TestRecordsAreSealed(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path) // never fails below root
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != "." || strings.HasPrefix(name, "internal/test") || name == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if !importsEtcd(file) {
			return nil
		}
		for _, use := range bareUses(file) {
			if name = filepath.ToSlash(name); !sealers[name] {
				t.Errorf("%s uses %s: records are written and read through coordinator/ledger/sealed.go", name, use)
			}
			found++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < len(sealers) {
		t.Errorf("only %d places use etcd's values, but each sealer does: the test looks for the wrong names", found)
	}
}

func importsEtcd(file *ast.File) bool {
	for _, i := range file.Imports {
		if strings.HasPrefix(strings.Trim(i.Path.Value, `"`), "go.etcd.io/etcd/") {
			return true
		}
	}
	return false
}

// bareUses returns the expressions of a file that put a key or read a key's value. The length of
// a value is no use of it.
func bareUses(file *ast.File) (uses []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "len" {
				return false
			}
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of := lastName(s.X)
		switch {
		case s.Sel.Name == "OpPut",
			s.Sel.Name == "Put" && strings.HasSuffix(strings.ToLower(of), "client"), s.Sel.Name == "Put" && strings.EqualFold(of, "etcd"),
			(s.Sel.Name == "Value" || s.Sel.Name == "GetValue") && (strings.EqualFold(of, "kv") || strings.EqualFold(of, "kvs")):
			uses = append(uses, of+"."+s.Sel.Name)
		}
		return true
	})
	return uses
}

// lastName is the last name of an expression such as resp.Kvs[0].
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return lastName(e.X)
	default:
		return ""
	}
}
