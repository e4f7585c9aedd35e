package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config finds the cluster: the one that KUBECONFIG or the user's own file
// names, or else the one that the process runs in.
func Config() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (neither KUBECONFIG nor a pod's service account says where): %w", err)
	}
	// What a leader of many studies needs; the API server has limits of its own.
	config.QPS, config.Burst = 50, 100
	config.UserAgent = manager
	return config, nil
}
