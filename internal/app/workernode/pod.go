package workernode

import (
	"context"
	"os"

	"github.com/fantasia-hpo/fantasia/worker"
	"github.com/fantasia-hpo/fantasia/worker/kubepod"
)

// price keeps the deletion cost of the worker's pod current, if requested; run does so
// until its context ends.
func (o *Options) price(w *worker.Options) (run func(context.Context), err error) {
	if !o.PodDeletionCost {
		return func(context.Context) {}, nil
	}
	pod, err := kubepod.New(os.Getenv("POD_NAMESPACE"), os.Getenv("POD_NAME"), w.Logger)
	if err != nil {
		return nil, err
	}
	w.Bus = pod.Watch(w.Bus)
	return pod.Run, nil
}
