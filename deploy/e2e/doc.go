// Package e2e tests Fantasia as it is deployed on Kubernetes: the chart, the
// images, and studies of a training program through all that clusters do to them.
//
// The tests have the build tag e2e; `make e2e` makes the images and runs them
// against the cluster that KUBECONFIG names, in a namespace of their own.
package e2e
