package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Programs recover from panics in what they have given to the library, such as Options.Progress. So it releases each lock
// by a defer that follows it: otherwise their next call would wait for ever.
func TestLocksAreReleasedByDefer(t *testing.T) {
	const root = "../../.."
	var files []string
	for _, dir := range []string{".", "remote", "internal/library", "internal/library/inprocess", "internal/library/onserver"} {
		list, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(list) == 0 {
			t.Fatal(dir, err)
		}
		files = append(files, list...)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	set, locks := token.NewFileSet(), 0
	for _, name := range files {
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			block, ok := n.(*ast.BlockStmt)
			if !ok {
				return true
			}
			for i, statement := range block.List {
				e, ok := statement.(*ast.ExprStmt)
				if !ok || !calls(e.X, "Lock", "RLock") {
					continue
				}
				locks++
				if i+1 < len(block.List) {
					if d, ok := block.List[i+1].(*ast.DeferStmt); ok && calls(d.Call, "Unlock", "RUnlock") {
						continue
					}
				}
				t.Errorf("%s: no defer that unlocks follows this lock", set.Position(statement.Pos()))
			}
			return true
		})
	}
	if locks < 10 {
		t.Errorf("found %d locks, want at least 10: the test looks in the wrong place", locks)
	}
}

// calls reports whether an expression calls a method with one of the names.
func calls(e ast.Expr, names ...string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains(names, method.Sel.Name)
}
