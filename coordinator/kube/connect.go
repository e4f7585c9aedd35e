package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config locates the cluster: the one of KUBECONFIG or of the user's own file, or else
// the one in which the process runs.
func Config() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("locate the cluster (by KUBECONFIG or a pod's service account): %w", err)
	}
	// These suit a leader of many studies; the API server has its own limits.
	config.QPS, config.Burst = 50, 100
	config.UserAgent = manager
	return config, nil
}
