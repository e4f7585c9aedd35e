package observe

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a backend in this process: OTLP over HTTP, kept in memory. Safe for
// concurrent use.
type receiver struct {
	url string

	mu     sync.Mutex
	traces map[string][]span
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{traces: map[string][]span{}}
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	if err := r.receive(req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *receiver) receive(req *http.Request) error {
	if req.URL.Path != "/v1/traces" {
		return fmt.Errorf("%s is not for traces", req.URL.Path)
	}
	body := req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(req.Body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var message collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &message); err != nil {
		return err
	}
	r.takeSpans(&message)
	return nil
}

// takeSpans keeps spans.
func (r *receiver) takeSpans(message *collectorpb.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range message.ResourceSpans {
		resource := texts(rs.Resource.GetAttributes())
		for _, scope := range rs.ScopeSpans {
			for _, s := range scope.Spans {
				got := convert(s, resource)
				r.traces[got.trace] = append(r.traces[got.trace], got)
			}
		}
	}
}

func convert(s *tracepb.Span, resource map[string]string) span {
	got := span{
		service: resource["service.name"], name: s.Name, resource: resource, attributes: texts(s.Attributes),
		trace: hex.EncodeToString(s.TraceId), id: hex.EncodeToString(s.SpanId), parent: hex.EncodeToString(s.ParentSpanId),
		start: time.Unix(0, int64(s.StartTimeUnixNano)), end: time.Unix(0, int64(s.EndTimeUnixNano)),
		failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR,
	}
	for _, l := range s.Links {
		got.links = append(got.links, hex.EncodeToString(l.TraceId))
	}
	return got
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		switch v := a.Value.GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[a.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			m[a.Key] = fmt.Sprint(v.DoubleValue)
		case *commonpb.AnyValue_BoolValue:
			m[a.Key] = fmt.Sprint(v.BoolValue)
		}
	}
	return m
}

// spans returns the spans of a trace.
func (r *receiver) spans(trace string) []span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]span(nil), r.traces[trace]...)
}

// all returns every span.
func (r *receiver) all() []span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []span
	for _, spans := range r.traces {
		list = append(list, spans...)
	}
	return list
}
