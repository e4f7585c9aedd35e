package dashboard

import (
	"crypto/sha256"
	_ "embed" // for the files below
	"encoding/hex"
	"io"
	"net/http"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

//go:embed static/script.js
var script string

//go:embed static/style.css
var style string

//go:embed static/icon.svg
var icon string

// file is a static file; its name changes with its content, so browsers can keep it.
type file struct{ name, kind, content string }

func newFile(stem, suffix, kind, content string) file {
	sum := sha256.Sum256([]byte(content))
	return file{stem + "-" + hex.EncodeToString(sum[:6]) + suffix, kind, content}
}

var (
	scriptFile = newFile("script", ".js", "text/javascript; charset=utf-8", script)
	styleFile  = newFile("style", ".css", "text/css; charset=utf-8", style+picture.Style())
	iconFile   = newFile("icon", ".svg", "image/svg+xml", icon)
	scriptPath = Path + "static/" + scriptFile.name
	stylePath  = Path + "static/" + styleFile.name
	iconPath   = Path + "static/" + iconFile.name
)

func serveStatic(w http.ResponseWriter, r *http.Request) {
	for _, f := range []file{scriptFile, styleFile, iconFile} {
		if r.PathValue("file") == f.name {
			w.Header().Set("Content-Type", f.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			_, _ = io.WriteString(w, f.content) // the reader may be gone
			return
		}
	}
	http.NotFound(w, r)
}
