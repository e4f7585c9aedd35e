package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// mediaType answers calls whose Content-Type is missing or unknown. Connect refuses them
// without a word; curl sends such calls unless it is told the type.
type mediaType struct {
	next   http.Handler
	logger *slog.Logger
}

// ServeHTTP implements http.Handler.
func (m *mediaType) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || spoken(r.Header.Get("Content-Type")) {
		m.next.ServeHTTP(w, r)
		return
	}
	text := fmt.Sprintf("Content-Type is %q; want application/json", r.Header.Get("Content-Type"))
	body, err := json.Marshal(map[string]string{"code": connect.CodeInvalidArgument.String(), "message": text})
	if err != nil {
		http.Error(w, text, http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Accept-Post", "application/json, application/proto, application/grpc, application/grpc-web")
	w.WriteHeader(http.StatusUnsupportedMediaType)
	if _, err := w.Write(body); err != nil {
		m.logger.DebugContext(r.Context(), "the caller is gone", slog.Any(telemetry.LogError, err))
	}
}

// spoken reports whether a media type is that of Connect, gRPC or gRPC-Web with JSON or
// protobuf.
func spoken(contentType string) bool {
	name, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	codec := strings.TrimPrefix(name, "application/")
	for _, protocol := range []string{"connect+", "grpc-web+", "grpc+"} {
		codec = strings.TrimPrefix(codec, protocol)
	}
	return codec == "json" || codec == "proto" || name == "application/grpc" || name == "application/grpc-web"
}
