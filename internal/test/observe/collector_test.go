//go:build e2e

package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// grpcReceiver is a receiver that a collector sends to.
type grpcReceiver struct {
	collectorpb.UnimplementedTraceServiceServer
	*receiver
}

func (g grpcReceiver) Export(_ context.Context, m *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	g.takeSpans(m)
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func newGRPCReceiver(t *testing.T) (*receiver, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{traces: map[string][]span{}}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, grpcReceiver{receiver: r})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return r, listener.Addr().String()
}

// collector runs the shipped configuration in a real collector and returns where
// it takes OTLP over HTTP. Of the trials that nothing speaks for, none is kept.
func collector(t *testing.T, endpoint string) string {
	t.Helper()
	config, err := filepath.Abs(filepath.Join(root, "deploy/helm/fantasia/files/collector.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// Loopback addresses of this test's own: the ports are the file's.
	host := fmt.Sprintf("127.0.%d.%d", testenv.FreePort(t)%250+1, testenv.FreePort(t)%250+1)
	testenv.Start(t, tool(t, "collector", "."), []string{"--config", config}, []string{
		"TRACES_ENDPOINT=" + endpoint, "LISTEN_HOST=" + host, "SLOW_MS=60000", "KEEP_PERCENT=0", "LONGEST=30s", "SETTLE=2s",
	}, func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", host+":4318")
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return "http://" + host + ":4318"
}

// TestCollectorKeepsWhatMatters sends four kinds of trials through the shipped
// configuration, as they come: the worker's spans first, the root last.
func TestCollectorKeepsWhatMatters(t *testing.T) {
	backend, address := newGRPCReceiver(t)
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(collector(t, address)+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithIDGenerator(telemetry.IDGenerator()))
	defer provider.Shutdown(context.Background())
	tracer := provider.Tracer(telemetry.ScopeName)
	const each = 20
	now := time.Now()
	send := func(kind string, n int) string {
		id, rootID := trace.TraceID{byte(len(kind)), byte(n), 1}, trace.SpanID{byte(len(kind)), byte(n), 2}
		took, status := time.Second, codes.Unset
		switch kind {
		case "slow":
			took = 2 * time.Minute
		case "failing":
			status = codes.Error
		}
		within := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: id, SpanID: rootID, TraceFlags: trace.FlagsSampled,
		}))
		_, evaluate := tracer.Start(within, telemetry.SpanEvaluate, trace.WithTimestamp(now.Add(-took)))
		evaluate.SetStatus(status, kind)
		evaluate.End(trace.WithTimestamp(now))
		if kind == "again" {
			_, second := tracer.Start(within, telemetry.SpanQueue, trace.WithTimestamp(now),
				trace.WithAttributes(telemetry.AttrAttempt.Int(2)))
			second.End(trace.WithTimestamp(now))
		}
		name, attrs := telemetry.SpanTrial, []attribute.KeyValue{telemetry.AttrTrial.Int(n)}
		if kind == "refitted" {
			name, attrs = telemetry.SpanRefit, []attribute.KeyValue{telemetry.AttrObservations.Int(n)}
		}
		_, whole := tracer.Start(telemetry.WithSpan(t.Context(), id, rootID), name, trace.WithNewRoot(),
			trace.WithTimestamp(now.Add(-took)), trace.WithAttributes(attrs...))
		whole.End(trace.WithTimestamp(now))
		return id.String()
	}
	ids := map[string][]string{}
	for _, kind := range []string{"ok", "slow", "failing", "again", "refitted"} {
		for n := range each {
			ids[kind] = append(ids[kind], send(kind, n+1))
		}
	}
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		var missing []string
		for kind, list := range ids {
			for _, id := range list {
				if kind != "ok" && len(backend.spans(id)) < 2 {
					missing = append(missing, kind)
				}
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("not kept, or not whole: %s", strings.Join(missing, " "))
		}
		return nil
	})
	for _, id := range ids["ok"] {
		if n := len(backend.spans(id)); n > 0 {
			t.Errorf("a trial like any other was kept: %d spans", n)
		}
	}
}
