package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// TestInternal checks that internal errors are hidden from callers and fully logged.
func TestInternal(t *testing.T) {
	var log bytes.Buffer
	c := dial(t, serve(t, broken{servertest.New(t)}, server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), "connect")
	for name, secret := range map[string]string{"studies/digits": "10.0.0.7", "studies/panics": "a wild pointer"} {
		log.Reset()
		_, err := c.GetStudy(within(t), connect.NewRequest(&fantasiav1.GetStudyRequest{Name: name}))
		if connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(log.String(), secret) {
			t.Errorf("%s: the log lacks %q: %s", name, secret, &log)
		}
	}
}

// TestTooLarge checks that the size of a body is bounded, also when it is forwarded.
func TestTooLarge(t *testing.T) {
	leads := serve(t, servertest.New(t), server.Options{})
	options := server.Options{MaxBody: 1 << 10}
	here := serve(t, servertest.New(t), options)
	options.Leader = func(context.Context) (string, bool, error) { return leads, false, nil }
	forwards := serve(t, servertest.New(t), options)
	for _, address := range []string{here, forwards} {
		for _, protocol := range []string{"connect", "grpc"} {
			large := named("digits") + strings.Repeat("#", 2<<10)
			_, err := dial(t, address, protocol).CreateStudy(within(t), connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: large}))
			if connect.CodeOf(err) != connect.CodeResourceExhausted {
				t.Errorf("%s: %v", protocol, err)
			}
		}
	}
}

// broken is a backend whose reads fail, or panic.
type broken struct{ *servertest.Backend }

func (broken) Study(_ context.Context, name string) (server.Study, error) {
	if name == "panics" {
		panic("a wild pointer")
	}
	return server.Study{}, errors.New("etcd at 10.0.0.7: no space")
}

// TestTrace checks that a request's span is a child of its caller's span, also if a replica
// forwards the request.
func TestTrace(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	leads := serve(t, servertest.New(t), server.Options{Tracer: provider})
	follows := serve(t, servertest.New(t), server.Options{
		Leader: func(context.Context) (string, bool, error) { return leads, false, nil },
	})
	req := connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("digits")})
	req.Header().Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if _, err := dial(t, follows, "connect").CreateStudy(within(t), req); err != nil {
		t.Fatal(err)
	}
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "fantasia.v1.StudyService/CreateStudy" ||
		ended[0].Parent().SpanID().String() != "b7ad6b7169203331" ||
		ended[0].SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("spans %v; want one, below the caller's", ended)
	}
}
