package workernode

import "github.com/fantasia-hpo/fantasia/messaging"

// SlurmJob returns the id of the job of Slurm in which a process with these variables runs, as squeue shows
// it; empty outside of Slurm.
func SlurmJob(getenv func(string) string) string {
	if job, index := getenv("SLURM_ARRAY_JOB_ID"), getenv("SLURM_ARRAY_TASK_ID"); job != "" && index != "" {
		return job + "_" + index
	}
	return getenv("SLURM_JOB_ID")
}

// siteOf returns where Slurm runs this process.
func siteOf(getenv func(string) string) messaging.Site {
	job := SlurmJob(getenv)
	if job == "" {
		return messaging.Site{}
	}
	return messaging.Site{Job: job, Node: getenv("SLURMD_NODENAME")}
}
