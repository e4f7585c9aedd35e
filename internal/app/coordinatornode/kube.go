package coordinatornode

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/coordinator/leadership"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/podcost"
	"github.com/fantasia-hpo/fantasia/coordinator/scale"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/dynamic"
)

// Kubernetes is what the leader does in a Kubernetes cluster; by default nothing.
type Kubernetes struct {
	// Studies makes it run Study resources.
	Studies bool
	// StudyPools is the file of the pools that each namespace may use; without it, no
	// namespace may use any.
	StudyPools string
	// StudyJobs is the file of the Jobs that each namespace's studies may bring; without it,
	// no study may bring one.
	StudyJobs string
	// StudyNamespaces are the namespaces whose studies are run; none means all.
	StudyNamespaces []string
	// Scale is the file of the resources that run each pool's workers, with the limits
	// for scaling them; without it, nothing is scaled.
	Scale string
	// Lease is the name of the Lease that shows who leads, in the coordinator's own
	// namespace; without it, none does.
	Lease string
	// PodDeletionCost are the pools whose workers' pods have their deletion cost
	// kept current, in the coordinator's own namespace; none by default.
	PodDeletionCost []string
}

// duties returns the leader's duties in a cluster.
func (o *Kubernetes) duties(replica string, etcd *clientv3.Client, log *slog.Logger) (duties []coordinator.Duty, err error) {
	if !o.Studies && o.Scale == "" && o.Lease == "" && len(o.PodDeletionCost) == 0 {
		return nil, nil
	}
	config, err := kube.Config()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a Kubernetes client: %w", err)
	}
	if o.Studies {
		rules := kube.Rules{
			Parse: func(file []byte) (*study.Study, error) { return inject.ParseStudy("", file) },
			Began: time.Now(),
		}
		if o.StudyPools != "" {
			if rules.Pools, err = kube.ReadPools(o.StudyPools); err != nil {
				return nil, err
			}
		}
		if o.StudyJobs != "" {
			if rules.Jobs, err = jobpolicy.Read(o.StudyJobs); err != nil {
				return nil, err
			}
		}
		studies := &kube.Controller{
			Rules: rules, Client: client, Replica: replica, Home: os.Getenv("POD_NAMESPACE"), Namespaces: o.StudyNamespaces,
			Ledger: ledger.New(etcd, ledger.Options{}), Logger: log,
		}
		duties = append(duties, studies.Duty())
	}
	if o.Lease != "" {
		mirror, err := leadership.New(os.Getenv("POD_NAMESPACE"), o.Lease, replica, client, log)
		if err != nil {
			return nil, fmt.Errorf("--kubernetes-lease: %w", err)
		}
		duties = append(duties, mirror.Duty())
	}
	if o.Scale != "" {
		targets, err := scale.Read(o.Scale)
		if err != nil {
			return nil, err
		}
		scaler := &scale.Scaler{Targets: targets, Client: client, Logger: log}
		duties = append(duties, scaler.Duty())
	}
	if len(o.PodDeletionCost) > 0 {
		keeper, err := podcost.New(os.Getenv("POD_NAMESPACE"), o.PodDeletionCost, client, log)
		if err != nil {
			return nil, fmt.Errorf("--pod-deletion-cost: %w", err)
		}
		duties = append(duties, keeper.Duty())
	}
	return duties, nil
}
