// Package helm makes what is derived from the chart in the folder fantasia: the
// schema of its values, its README and the plain manifests of deploy/k8s. Its
// tests render the chart with helm itself and look at what comes out.
package helm
