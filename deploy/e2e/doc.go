// Package e2e tests Fantasia as deployed on Kubernetes: the chart, the images, and
// studies of a training program under everything that happens in clusters.
//
// The tests have the build tag e2e. `make e2e` builds the images and runs the tests
// against the cluster of KUBECONFIG, in a namespace of their own.
package e2e
