package kubejob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExporter checks which of the worker's variables reach a program: those of
// https://opentelemetry.io/docs/specs/otel/protocol/exporter that say where spans go,
// and none that is a secret, a file of the worker's pod, or about the worker.
func TestExporter(t *testing.T) {
	got := exporter([]string{
		"PATH=/bin", "OTEL_SERVICE_NAME=fantasia-worker", "OTEL_RESOURCE_ATTRIBUTES=k8s.pod.name=worker-0",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4317/$a", "OTEL_LOGS_EXPORTER=none",
		"OTEL_EXPORTER_OTLP_HEADERS=key=secret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=key=secret",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.crt", "OTEL_EXPORTER_OTLP_CLIENT_KEY=/tls.key",
	}, "training")
	container := map[string]any{"env": []any{map[string]any{"name": "OTEL_LOGS_EXPORTER", "value": "otlp"}}}
	setEnvironment(container, got)
	field := func(path string) map[string]any { return map[string]any{"fieldRef": map[string]any{"fieldPath": path}} }
	want := []any{
		map[string]any{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4317/$$a"},
		map[string]any{"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "grpc"},
		map[string]any{"name": "FANTASIA_POD", "valueFrom": field("metadata.name")},
		map[string]any{"name": "FANTASIA_NODE", "valueFrom": field("spec.nodeName")},
		map[string]any{"name": "OTEL_RESOURCE_ATTRIBUTES",
			"value": "k8s.namespace.name=training,k8s.pod.name=$(FANTASIA_POD),k8s.node.name=$(FANTASIA_NODE)"},
		map[string]any{"name": "OTEL_LOGS_EXPORTER", "value": "otlp"}, // the template's own
	}
	if diff := cmp.Diff(want, container["env"]); diff != "" {
		t.Errorf("the program's environment (-want +got):\n%s", diff)
	}
	if none := exporter([]string{"PATH=/bin"}, "training"); none != nil {
		t.Errorf("without telemetry the program gets %v", none)
	}
}
