//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// api returns a client of the release's API, with the token that the chart has drawn. Each
// request reaches some ready replica, by a forwarded port: the Kubernetes API's proxy of
// Services passes no token on.
func (c *cluster) api() fantasiav1connect.StudyServiceClient {
	return c.caller(&bearer{cluster: c})
}

// caller returns a client that calls through b.
func (c *cluster) caller(b *bearer) fantasiav1connect.StudyServiceClient {
	b.next = c.transport()
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: b, Timeout: 20 * time.Second}, c.address())
}

// token returns the token of the API that the chart has drawn.
func (c *cluster) token(ctx context.Context) (string, error) {
	secret, err := c.kube.CoreV1().Secrets(c.namespace).Get(ctx, release+"-token", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return string(secret.Data["token"]), nil
}

// refusesStrangers checks that a call without a token is refused.
func (c *cluster) refusesStrangers() {
	c.t.Helper()
	c.await(time.Minute, func(ctx context.Context) error {
		_, err := c.caller(&bearer{}).ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
		switch {
		case err == nil:
			c.t.Fatal("a call without a token is answered")
		case connect.CodeOf(err) == connect.CodeUnauthenticated:
			return nil
		}
		return err
	})
}

// bearer adds the token of the release of a cluster to requests, or none.
type bearer struct {
	cluster *cluster
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.cluster == nil {
		return b.next.RoundTrip(r)
	}
	token, err := b.cluster.token(r.Context())
	if err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(r)
}

// dial connects to the API's port of a coordinator that is ready.
func (c *cluster) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	pods, err := c.pods(ctx, "coordinator")
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !ready(p) })
	if len(pods) == 0 {
		return nil, errors.New("no coordinator is ready")
	}
	return c.dialPort(pods[rand.IntN(len(pods))].Name, "8080")
}

// dialPort connects to a port of a pod.
func (c *cluster) dialPort(pod, port string) (net.Conn, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	target := c.kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(c.namespace).Name(pod).SubResource("portforward").URL()
	connection, _,
		err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target).Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("forward to %s: %w", pod, err)
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	if _, err := connection.CreateStream(headers); err != nil {
		return nil, errors.Join(fmt.Errorf("forward to %s: %w", pod, err), connection.Close())
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forward to %s: %w", pod, err), connection.Close())
	}
	return &forwarded{stream: data, connection: connection}, nil
}

// forwarded is a connection to a port of a pod. It has no deadlines of its own.
type forwarded struct {
	stream
	connection io.Closer
}

// stream is a stream of a connection to the Kubernetes API.
type stream interface {
	io.ReadWriteCloser
	Reset() error
}

var _ net.Conn = (*forwarded)(nil)

// Close implements net.Conn.
func (f *forwarded) Close() error { return errors.Join(f.Reset(), f.connection.Close()) }

// LocalAddr implements net.Conn.
func (f *forwarded) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (f *forwarded) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (f *forwarded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (f *forwarded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (f *forwarded) SetWriteDeadline(time.Time) error { return nil }
