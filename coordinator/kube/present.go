package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// ResourceOf returns the namespace and the name of the resource that a study came from. It
// returns false if it came from none.
func ResourceOf(s *record.Study) (namespace, name string, ok bool) {
	return strings.Cut(s.Definition.Metadata.Name, ".")
}

// Present reports whether the resource that a study came from is in the cluster. A resource that
// only has the same name is another one, since it has another UID.
func Present(ctx context.Context, client dynamic.Interface, s *record.Study) (bool, error) {
	namespace, name, _ := ResourceOf(s)
	u, err := client.Resource(Studies()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return false, fmt.Errorf("look for the resource of study %s: the cluster has no definition of studies; want the cluster that the study ran in", s.Definition.Metadata.Name)
	case apierrors.IsNotFound(err):
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the resource of study %s: %w", s.Definition.Metadata.Name, err)
	}
	return bare(u).ID() == s.ID, nil
}
