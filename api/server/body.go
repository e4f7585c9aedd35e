package server

import (
	"errors"
	"io"
	"net"
	"net/http"

	"connectrpc.com/connect"
)

// wellFormed answers a request whose body breaks the rules of HTTP as a mistake of the caller. Connect takes
// every error of a body for one of the server.
type wellFormed struct{ next http.Handler }

// ServeHTTP implements http.Handler.
func (h wellFormed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		checked := *r
		checked.Body = &checkedBody{ReadCloser: r.Body, request: r}
		r = &checked
	}
	h.next.ServeHTTP(w, r)
}

// checkedBody is the body of a request.
type checkedBody struct {
	io.ReadCloser
	request *http.Request
}

// Read implements io.Reader.
func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) || b.request.Context().Err() != nil {
		return n, err
	}
	_, refused := errors.AsType[*connect.Error](err)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	_, network := errors.AsType[net.Error](err)
	if refused || tooLarge || network {
		return n, err
	}
	return n, connect.NewError(connect.CodeInvalidArgument, &Reworded{"the body of the request cannot be read: " + err.Error(), err})
}
