package kubejob

import "k8s.io/apimachinery/pkg/runtime/schema"

// The default conditions, for kinds without conditions of their own in this package.
// Job, JobSet, TrainJob and Kubeflow's jobs have them.
const (
	defaultSuccess = `status.conditions.exists(c, c.type in ["Complete", "Completed", "Succeeded"] && c.status == "True")`
	defaultFailure = `status.conditions.exists(c, c.type == "Failed" && c.status == "True")`
)

// conditionsOf returns the expressions for a kind.
func conditionsOf(kind schema.GroupKind) (success, failure string) {
	switch kind {
	case schema.GroupKind{Group: "ray.io", Kind: "RayJob"}:
		return `status.jobStatus == "SUCCEEDED"`,
			`status.jobStatus in ["FAILED", "STOPPED"] || status.jobDeploymentStatus == "Failed"`
	case schema.GroupKind{Kind: "Pod"}:
		return `status.phase == "Succeeded"`, `status.phase == "Failed"`
	}
	return defaultSuccess, defaultFailure
}
