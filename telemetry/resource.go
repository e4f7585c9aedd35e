package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// serviceNamespace is the service.namespace unless OTEL_RESOURCE_ATTRIBUTES, with
// which Kubernetes says where a pod is, has another.
const serviceNamespace = "fantasia"

// identity are the resource attributes that say which process this is.
func identity(o Options) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		semconv.ServiceName(o.Service), semconv.ServiceVersion(o.Version), semconv.ServiceNamespace(serviceNamespace),
	}
	if o.Instance != "" {
		attrs = append(attrs, semconv.ServiceInstanceID(o.Instance))
	}
	return attrs
}
