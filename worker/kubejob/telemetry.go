package kubejob

import (
	"slices"
	"strings"
)

// exporter returns the variables by which the program exports its spans as the worker
// does, from the worker's environment, and those that say which pod they come from.
// Without OTEL_ variables there are none.
func exporter(environ []string, namespace string) []variable {
	var found []variable
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if passed(name) {
			found = append(found, variable{name: name, value: escape(value)})
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return append(found,
		variable{name: "FANTASIA_POD", field: "metadata.name"},
		variable{name: "FANTASIA_NODE", field: "spec.nodeName"},
		variable{name: resourceAttributes, value: "k8s.namespace.name=" + namespace +
			",k8s.pod.name=$(FANTASIA_POD),k8s.node.name=$(FANTASIA_NODE)"})
}

// resourceAttributes is the variable that describes the process, to OpenTelemetry.
const resourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"

// passed reports whether a program gets a variable of the worker. It gets no variable that
// describes the worker, and none that names a file, since its pod lacks the file. It gets
// no secret either: more people can read a manifest than a Secret.
func passed(name string) bool {
	return strings.HasPrefix(name, "OTEL_") && name != "OTEL_SERVICE_NAME" && name != resourceAttributes &&
		!strings.HasSuffix(name, "_CERTIFICATE") && !strings.HasSuffix(name, "_CLIENT_KEY") && !strings.HasSuffix(name, "_HEADERS")
}
