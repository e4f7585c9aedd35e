package telemetry

import (
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// serviceNamespace is the service.namespace outside of Kubernetes.
const serviceNamespace = "fantasia"

// kubernetes are the attributes that a pod learns from the downward API: each is
// read from the environment variable of its name in capitals, with underscores,
// such as K8S_POD_NAME.
var kubernetes = [...]attribute.Key{
	semconv.K8SClusterNameKey, semconv.K8SNamespaceNameKey, semconv.K8SNodeNameKey,
	semconv.K8SPodNameKey, semconv.K8SPodUIDKey, semconv.K8SContainerNameKey,
	semconv.K8SDeploymentNameKey, semconv.K8SStatefulSetNameKey, semconv.K8SJobNameKey,
}

// whereabouts are the resource attributes that say which of a service's processes
// this is. In Kubernetes they follow the semantic conventions: service.namespace
// is the pod's namespace, service.instance.id its namespace, name and container
// joined by dots. OTEL_RESOURCE_ATTRIBUTES beats all of them.
func whereabouts(instance string) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	value := func(k attribute.Key) string {
		return os.Getenv(strings.ToUpper(strings.ReplaceAll(string(k), ".", "_")))
	}
	for _, k := range kubernetes {
		if v := value(k); v != "" {
			attrs = append(attrs, k.String(v))
		}
	}
	namespace := serviceNamespace
	if n, pod := value(semconv.K8SNamespaceNameKey), value(semconv.K8SPodNameKey); n != "" && pod != "" {
		namespace, instance = n, n+"."+pod
		if container := value(semconv.K8SContainerNameKey); container != "" {
			instance += "." + container
		}
	}
	attrs = append(attrs, semconv.ServiceNamespace(namespace))
	if instance != "" {
		attrs = append(attrs, semconv.ServiceInstanceID(instance))
	}
	return attrs
}
