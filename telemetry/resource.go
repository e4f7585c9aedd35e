package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// serviceNamespace is the service.namespace unless OTEL_RESOURCE_ATTRIBUTES sets another,
// as on Kubernetes.
const serviceNamespace = "fantasia"

// identity returns the resource attributes that identify this process.
func identity(o Options) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		semconv.ServiceName(o.Service), semconv.ServiceVersion(o.Version), semconv.ServiceNamespace(serviceNamespace),
	}
	if o.Instance != "" {
		attrs = append(attrs, semconv.ServiceInstanceID(o.Instance))
	}
	return attrs
}
