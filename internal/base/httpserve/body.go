package httpserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// BodyTimeout returns a handler that limits the time for which a request's body may be
// read to d, from the start of the request. Reading then fails with an error that wraps
// context.DeadlineExceeded. An answer may take any time.
func BodyTimeout(next http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// Writers of tests know no deadlines.
		if r.Body == nil || r.Body == http.NoBody || control.SetReadDeadline(time.Now().Add(d)) != nil {
			next.ServeHTTP(w, r)
			return
		}
		r.Body = &timedBody{ReadCloser: r.Body, control: control, limit: d}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline at the body's end: over HTTP/1, it would otherwise end the
// request's context later.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the request's body took longer than %v: %w", b.limit, context.DeadlineExceeded)
	case err != nil:
		_ = b.control.SetReadDeadline(time.Time{}) // the connection may be gone
	}
	return n, err
}
