package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fantasia-hpo/fantasia/coordinator"
)

// inFlight is how many bytes a request has in memory, from the time at which they are read
// until it is answered. They count against its caller and against all callers.
type inFlight struct {
	l     *limiter
	c     *caller
	name  string
	bytes int64 // l.mu guards it
}

// The context keys of a request's inFlight, and of one whose message is compressed.
type (
	inFlightKey   struct{}
	compressedKey struct{}
)

// meter returns the request with a body that counts what is read. A compressed body
// counts as the largest that it can become until its message is known.
func (f *inFlight) meter(r *http.Request, maxBody int64) (*http.Request, error) {
	ctx := context.WithValue(r.Context(), inFlightKey{}, f)
	if compressed(r) {
		return r.WithContext(context.WithValue(ctx, compressedKey{}, f)), f.reserve(maxBody)
	}
	metered := r.WithContext(ctx) // handlers MUST NOT change a request that they were given
	if r.Body == nil || r.Body == http.NoBody {
		return metered, nil
	}
	metered.Body = &meteredBody{r.Body, f}
	return metered, nil
}

// compressed reports whether a request's message is compressed, in any of the protocols.
func compressed(r *http.Request) bool {
	encodings := []string{r.Header.Get("Content-Encoding"), r.Header.Get("Grpc-Encoding"), r.Header.Get("Connect-Content-Encoding")}
	if r.Method == http.MethodGet {
		encodings = append(encodings, r.URL.Query().Get("compression"))
	}
	return slices.ContainsFunc(encodings, func(e string) bool { return e != "" && e != "identity" })
}

// reserve counts n further bytes, or returns the error that says which limit they exceed.
func (f *inFlight) reserve(n int64) error {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	limits := f.l.limits
	switch {
	case f.c.bytes+n > limits.Bytes:
		return exhausted("the requests of %s that are not answered yet have more than %d bytes; try again later", f.name, limits.Bytes)
	case f.l.bytes+n > limits.AllBytes:
		return exhausted("the requests to this server that are not answered yet have more than %d bytes; try again later", limits.AllBytes)
	}
	f.add(n)
	return nil
}

// add changes what the request holds. The caller MUST hold the lock.
func (f *inFlight) add(n int64) {
	f.bytes += n
	f.c.bytes += n
	f.l.bytes += n
}

// shrink says how many bytes the request holds, at most as many as before.
func (f *inFlight) shrink(n int64) {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	f.add(min(n, f.bytes) - f.bytes)
}

// meteredBody counts what is read of a body.
type meteredBody struct {
	io.ReadCloser
	request *inFlight
}

// Read implements io.Reader.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if refused := b.request.reserve(int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}

// sized is an interceptor that tells a request's inFlight how large its message is, and lets
// only so many requests of a caller be worked on, and study files be read.
type sized struct{}

var _ connect.Interceptor = sized{}

// WrapUnary settles a request.
func (sized) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		countMessage(ctx, req.Any())
		f, ok := ctx.Value(inFlightKey{}).(*inFlight)
		if !ok {
			return next(ctx, req)
		}
		if procedures[req.Spec().Procedure].parses {
			done, refused := f.l.read(ctx, f.name, f.c)
			if refused != nil {
				return nil, refused
			}
			defer done()
		}
		end := f.turn(ctx)
		defer end()
		return next(coordinator.WhenWaiting(ctx, end), req)
	}
}

// WrapStreamingClient returns clients unchanged.
func (sized) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler settles a stream's request, and lets only so many streams of a caller begin
// at the same time.
func (sized) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		f, ok := ctx.Value(inFlightKey{}).(*inFlight)
		if !ok {
			return next(ctx, &sizedConn{conn, ctx, func() {}})
		}
		begun := f.turn(ctx)
		defer begun()
		late := time.AfterFunc(f.l.limits.Beginning, begun)
		defer late.Stop()
		return next(coordinator.WhenWaiting(ctx, begun), &sizedConn{conn, ctx, begun})
	}
}

// sizedConn is a stream whose request is settled when it was received.
type sizedConn struct {
	connect.StreamingHandlerConn
	ctx   context.Context //nolint:containedctx // connect's connections have no other way to it
	begun func()          // ends the turn of its beginning
}

// Send implements connect.StreamingHandlerConn.
func (c *sizedConn) Send(message any) error {
	defer c.begun()
	return c.StreamingHandlerConn.Send(message)
}

// Receive implements connect.StreamingHandlerConn.
func (c *sizedConn) Receive(message any) error {
	err := c.StreamingHandlerConn.Receive(message)
	countMessage(c.ctx, message)
	return err
}

func countMessage(ctx context.Context, message any) {
	f, compressed := ctx.Value(compressedKey{}).(*inFlight)
	if m, ok := message.(proto.Message); ok && compressed {
		f.shrink(int64(proto.Size(m)))
	}
}

// exhausted returns the error for a request beyond a limit that had no effect.
func exhausted(format string, args ...any) error {
	return withDetail(connect.NewError(connect.CodeResourceExhausted, fmt.Errorf(format, args...)),
		&errdetails.RetryInfo{RetryDelay: durationpb.New(limitRetry)})
}
