// Package openapi is the API as an OpenAPI document, which `make generate` makes of
// api/fantasia/v1/fantasia.proto.
package openapi

import (
	_ "embed"
	"net/http"
	"strconv"
)

// Pattern is where a coordinator serves the document.
const Pattern = "GET /openapi.json"

//go:embed openapi.json
var document []byte

// Handler serves the document.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(document)))
		_, _ = w.Write(document) // the caller may be gone
	})
}
