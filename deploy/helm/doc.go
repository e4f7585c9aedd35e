// Package helm generates what is derived from the chart in the directory fantasia: the
// schema of its values, its README and the plain manifests of deploy/k8s. Its tests
// render the chart with helm itself and check the result.
package helm
