package coordinatorcli

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

// kubernetes is what the leader does in a Kubernetes cluster; by default nothing.
type kubernetes struct {
	// studies makes it run Study resources.
	studies bool
	// studyPools is the file of the pools that each namespace may use; without it, no
	// namespace may use any.
	studyPools string
	// studyJobs is the file of the Jobs that each namespace's studies may bring; without it,
	// no study may bring one.
	studyJobs string
	// studyNamespaces are the namespaces whose studies are run; none means all.
	studyNamespaces []string
	// scale is the file of the resources that run each pool's workers, with the limits
	// for scaling them; without it, nothing is scaled.
	scale string
	// lease is the name of the Lease that shows who leads, in the coordinator's own
	// namespace; without it, none does.
	lease string
	// podDeletionCost are the pools whose workers' pods have their deletion cost
	// kept current, in the coordinator's own namespace; none by default.
	podDeletionCost []string
}

// duties returns the leader's duties in a cluster.
func (k *kubernetes) duties(replica string, etcd *clientv3.Client, log *slog.Logger) (duties []coordinator.Duty, err error) {
	if !k.studies && k.scale == "" && k.lease == "" && len(k.podDeletionCost) == 0 {
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
	if k.studies {
		rules := kube.Rules{
			Parse: func(file []byte) (*study.Study, error) { return inject.ParseStudy("", file) },
			Began: time.Now(),
		}
		if k.studyPools != "" {
			if rules.Pools, err = kube.ReadPools(k.studyPools); err != nil {
				return nil, err
			}
		}
		if k.studyJobs != "" {
			if rules.Jobs, err = jobpolicy.Read(k.studyJobs); err != nil {
				return nil, err
			}
		}
		controller := &kube.Controller{
			Rules: rules, Client: client, Replica: replica, Home: os.Getenv("POD_NAMESPACE"), Namespaces: k.studyNamespaces,
			Ledger: ledger.New(etcd, ledger.Options{}), Logger: log,
		}
		duties = append(duties, controller.Duty())
	}
	if k.lease != "" {
		mirror, err := leadership.New(os.Getenv("POD_NAMESPACE"), k.lease, replica, client, log)
		if err != nil {
			return nil, fmt.Errorf("--kubernetes-lease: %w", err)
		}
		duties = append(duties, mirror.Duty())
	}
	if k.scale != "" {
		targets, err := scale.Read(k.scale)
		if err != nil {
			return nil, err
		}
		scaler := &scale.Scaler{Targets: targets, Client: client, Logger: log}
		duties = append(duties, scaler.Duty())
	}
	if len(k.podDeletionCost) > 0 {
		keeper, err := podcost.New(os.Getenv("POD_NAMESPACE"), k.podDeletionCost, client, log)
		if err != nil {
			return nil, fmt.Errorf("--pod-deletion-cost: %w", err)
		}
		duties = append(duties, keeper.Duty())
	}
	return duties, nil
}
