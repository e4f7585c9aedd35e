package kubejob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

// Attach copies stdin to the standard input of a container until stdin or the container ends,
// the connection breaks, or ctx ends.
type Attach func(ctx context.Context, namespace, pod, container string, stdin io.Reader) error

// AttachTo returns an Attach that goes through a cluster's API, which needs the right to create
// pods/attach: over WebSocket, or over SPDY if something between does not know that.
func AttachTo(config *rest.Config, core *kubecore.Client) Attach {
	return func(ctx context.Context, namespace, pod, container string, stdin io.Reader) error {
		address := core.AttachURL(namespace, pod, container)
		socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, address.String())
		if err != nil {
			return fmt.Errorf("reach the cluster: %w", err)
		}
		spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, address)
		if err != nil {
			return fmt.Errorf("reach the cluster: %w", err)
		}
		either, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
		if err != nil {
			return fmt.Errorf("reach the cluster: %w", err)
		}
		return either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin})
	}
}

// errDetached means that nothing reads a program's input any more.
var errDetached = errors.New("the connection to the program's standard input has ended")

// input is the standard input of a program in a pod.
type input struct {
	pipe   *io.PipeWriter
	cancel context.CancelFunc
	// gone is closed when the connection has ended; err then says why, or is nil.
	gone chan struct{}
	err  error
}

// attach connects a container's standard input until close is called.
func (o *Options) attach(ctx context.Context, namespace, pod, container string) *input {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r, w := io.Pipe()
	in := &input{pipe: w, cancel: cancel, gone: make(chan struct{})}
	go func() {
		defer close(in.gone)
		in.err = o.Attach(ctx, namespace, pod, container, r)
		_ = r.CloseWithError(errDetached) // never fails
	}()
	return in
}

// send writes a line. Its answer comes when the connection has taken the line or has ended.
func (in *input) send(line []byte) <-chan error {
	sent := make(chan error, 1)
	go func() {
		_, err := in.pipe.Write(line)
		sent <- err
	}()
	return sent
}

// attached reports whether the connection has not ended.
func (in *input) attached() bool {
	select {
	case <-in.gone:
		return false
	default:
		return true
	}
}

// end closes the program's input.
func (in *input) end() { _ = in.pipe.Close() } // never fails

// close ends the connection.
func (in *input) close() {
	in.end()
	in.cancel()
	<-in.gone
}
