package workernode

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
)

func TestSiteOf(t *testing.T) {
	for _, tt := range []struct {
		environ map[string]string
		want    messaging.Site
	}{
		{map[string]string{"SLURMD_NODENAME": "n17"}, messaging.Site{}},
		{map[string]string{"SLURM_JOB_ID": "4713", "SLURMD_NODENAME": "n17"}, messaging.Site{Job: "4713", Node: "n17"}},
		{map[string]string{"SLURM_JOB_ID": "4713", "SLURM_ARRAY_JOB_ID": "4711", "SLURM_ARRAY_TASK_ID": "2"}, messaging.Site{Job: "4711_2"}},
	} {
		if got := siteOf(func(name string) string { return tt.environ[name] }); got != tt.want {
			t.Errorf("%v: %+v", tt.environ, got)
		}
	}
}
