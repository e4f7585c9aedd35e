package leadership

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mirror returns a replica's mirror in a cluster that is only in memory; the end-to-end
// test of the chart looks at a real one.
func mirror(t *testing.T, cluster *fake.FakeDynamicClient, replica string, log *slog.Logger) *Mirror {
	t.Helper()
	m, err := New("n", "fantasia", replica, cluster, log)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// empty has a Lease that nobody has held yet.
func empty() *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClient(runtime.NewScheme(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"namespace": "n", "name": "fantasia"},
	}})
}

// spec returns the spec of the Lease.
func spec(t *testing.T, cluster *fake.FakeDynamicClient) map[string]any {
	t.Helper()
	lease, err := cluster.Resource(resource).Namespace("n").Get(t.Context(), "fantasia", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(lease.Object, "spec")
	return spec
}

// The Lease has the leader of the latest epoch, and a replica that does not yet know that
// it was replaced leaves it as it is.
func TestTheLatestEpochIsShown(t *testing.T) {
	cluster, log := empty(), slog.New(slog.DiscardHandler)
	old, successor := mirror(t, cluster, "old", log), mirror(t, cluster, "successor", log)
	for _, step := range []struct {
		by     *Mirror
		epoch  int64
		holder string
		times  int64
	}{{old, 7, "old", 0}, {old, 7, "old", 0}, {successor, 9, "successor", 1}, {old, 7, "successor", 1}, {old, 12, "old", 2},
		{old, 13, "old", 2}, {successor, 1 << 40, "successor", 3}} {
		if err := step.by.renew(t.Context(), step.epoch, time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := spec(t, cluster)["holderIdentity"]; got != step.holder {
			t.Errorf("after %s of epoch %d the Lease names %v, want %s", step.by.replica, step.epoch, got, step.holder)
		}
		if got := spec(t, cluster)["leaseTransitions"]; got != step.times {
			t.Errorf("after %s of epoch %d the Lease counts %v changes of its holder, want %d", step.by.replica, step.epoch, got, step.times)
		}
	}
}

// The Lease is renewed while the term lasts, and counts longer than one renewal takes.
func TestRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := empty()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := mirror(t, cluster, "r", slog.New(slog.DiscardHandler)).run(ctx, 3); !errors.Is(err, context.Canceled) {
				t.Errorf("run ended with %v", err)
			}
		})
		began := time.Now()
		time.Sleep(5*renewEvery + time.Second)
		s := spec(t, cluster)
		for field, want := range map[string]time.Time{"acquireTime": began, "renewTime": began.Add(5 * renewEvery)} {
			at, err := time.Parse(metav1.RFC3339Micro, s[field].(string))
			if err != nil || !at.Equal(want.Truncate(time.Microsecond)) {
				t.Errorf("%s is %v, %v; want %v", field, at, err, want)
			}
		}
		if s["leaseDurationSeconds"] != int64(30) || s["leaseTransitions"] != int64(0) {
			t.Errorf("%v", s)
		}
		cancel()
		running.Wait()
	})
}

// A failure is logged once, not at each renewal, and does not end the duty.
func TestARefusedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := empty()
		cluster.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
		var log bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 4*renewEvery)
		defer cancel()
		if err := mirror(t, cluster, "r", slog.New(slog.NewTextHandler(&log, nil))).run(ctx, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("run ended with %v", err)
		}
		if n := strings.Count(log.String(), "write the Lease n/fantasia: forbidden"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, log.String())
		}
	})
}

// Without a Lease the leader creates none: it would outlive the installation.
func TestNoLeaseIsCreated(t *testing.T) {
	cluster := fake.NewSimpleDynamicClient(runtime.NewScheme())
	err := mirror(t, cluster, "r", slog.New(slog.DiscardHandler)).renew(t.Context(), 1, time.Now())
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "read the Lease n/fantasia") {
		t.Errorf("renew: %v, want that the Lease is not found", err)
	}
	for _, action := range cluster.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("the leader does %s", action.GetVerb())
		}
	}
}

func TestNamespaceIsNeeded(t *testing.T) {
	if _, err := New("", "l", "r", nil, nil); err == nil || !strings.Contains(err.Error(), "POD_NAMESPACE") {
		t.Errorf("without a namespace: %v, want an error that names POD_NAMESPACE", err)
	}
}
