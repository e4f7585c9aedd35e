// Package leadership is a duty of whoever leads in a cluster of Kubernetes: it shows in a
// Lease who leads, for `kubectl get leases` and for tools that look there. The Lease only
// tells. etcd decides who leads, whatever the Lease says.
package leadership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// renewEvery is how often the leader renews the Lease.
	renewEvery = 10 * time.Second
	// duration is how long a Lease counts after it was renewed. Whoever reads it later
	// knows that nobody leads, or that the leader does not reach Kubernetes.
	duration = 3 * renewEvery
	// callTimeout bounds one read or write.
	callTimeout = 5 * time.Second
	// microTime is the form of a Lease's times, metav1.MicroTime.
	microTime = "2006-01-02T15:04:05.000000Z07:00"
	// epochAnnotation is the epoch of the leader that the Lease shows.
	epochAnnotation = "fantasia.dev/epoch"
)

// resource is the Lease's, https://kubernetes.io/docs/concepts/architecture/leases/.
var resource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Mirror keeps a Lease current while its replica leads.
type Mirror struct {
	namespace, name, replica string
	client                   dynamic.Interface
	log                      *slog.Logger
}

// New returns the mirror of a replica in the Lease of a name. The Lease must be there, and
// the client must be allowed to get and update it. A leader does not create it: it would
// stay behind when an installation is removed.
func New(namespace, name, replica string, client dynamic.Interface, log *slog.Logger) (*Mirror, error) {
	if namespace == "" {
		return nil, errors.New("the namespace of the Lease is unknown: set POD_NAMESPACE from the pod's field metadata.namespace")
	}
	return &Mirror{namespace: namespace, name: name, replica: replica, client: client, log: log}, nil
}

// Duty is the mirror as a duty of whoever leads.
func (m *Mirror) Duty() coordinator.Duty {
	return coordinator.Duty{Name: "show who leads", Run: func(ctx context.Context, c *coordinator.Coordinator) error {
		epoch, err := c.Epoch(ctx)
		if err != nil {
			return fmt.Errorf("ask for the epoch: %w", err)
		}
		return m.run(ctx, epoch)
	}}
}

// run renews the Lease until ctx ends. A failure is logged once.
func (m *Mirror) run(ctx context.Context, epoch int64) error {
	since := time.Now()
	failure := ""
	for range backoff.Every(ctx, renewEvery) {
		err := m.renew(ctx, epoch, since)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			failure = ""
		case err.Error() != failure:
			failure = err.Error()
			m.log.Warn("the Lease does not show who leads", telemetry.LogError, err)
		}
	}
	return context.Cause(ctx)
}

// renew writes this replica into the Lease, unless the Lease is of a later epoch: then
// this leader has been replaced and does not know it yet.
func (m *Mirror) renew(ctx context.Context, epoch int64, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	leases := m.client.Resource(resource).Namespace(m.namespace)
	lease, err := leases.Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Lease %s/%s: %w", m.namespace, m.name, err)
	}
	annotations := lease.GetAnnotations()
	if later, err := strconv.ParseInt(annotations[epochAnnotation], 10, 64); err == nil && later > epoch {
		return nil
	}
	transitions := int64(0)
	if annotations[epochAnnotation] != "" { // earlier versions did not count
		transitions, _, _ = unstructured.NestedInt64(lease.Object, "spec", "leaseTransitions")
		if holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); holder != m.replica {
			transitions++
		}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[epochAnnotation] = strconv.FormatInt(epoch, 10)
	lease.SetAnnotations(annotations)
	lease.Object["spec"] = map[string]any{
		"holderIdentity":       m.replica,
		"leaseDurationSeconds": int64(duration / time.Second),
		"acquireTime":          since.UTC().Format(microTime),
		"renewTime":            time.Now().UTC().Format(microTime),
		"leaseTransitions":     transitions,
	}
	// An update is refused if the Lease has changed since it was read.
	if _, err = leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the Lease %s/%s: %w", m.namespace, m.name, err)
	}
	return nil
}
