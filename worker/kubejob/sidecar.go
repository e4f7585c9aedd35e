package kubejob

import (
	"encoding/json"
	"fmt"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
)

// The names of what the sidecar adds to a pod.
const (
	sidecarName   = "fantasia-report"
	sidecarVolume = "fantasia-report"
	sidecarMount  = "/var/run/fantasia"
)

// sidecar is the native sidecar that takes reports beside a program. The
// program's own command stays as it is.
type sidecar struct {
	image, policy string
	objective     string // JSON
	file          string // of metrics
}

func newSidecar(image, policy string, a *messaging.Assignment) (*sidecar, error) {
	objective, err := json.Marshal(a.Objective)
	if err != nil {
		return nil, fmt.Errorf("write the objective: %w", err)
	}
	s := &sidecar{image: image, policy: policy, objective: string(objective)}
	if m := a.Run.Metrics; m != nil {
		s.file = m.File
	}
	return s, nil
}

// variables are what the program learns about it.
func (s *sidecar) variables() []variable {
	return []variable{
		{"FANTASIA_REPORT", sidecarMount + "/" + jobsidecar.ReportFile},
		{"FANTASIA_TRIAL_DIR", sidecarMount},
		{"FANTASIA_SIDECAR", "http://" + jobsidecar.Address},
	}
}

// apply adds the sidecar to a pod template and the shared folder to a container.
func (s *sidecar) apply(pod, container map[string]any) error {
	spec := child(pod, "spec")
	for _, list := range []string{"containers", "initContainers"} {
		for _, element := range asList(spec[list]) {
			if c, ok := element.(map[string]any); ok && c["name"] == sidecarName {
				return fmt.Errorf("a container has the name %s, which is the sidecar's", sidecarName)
			}
		}
	}
	mount := map[string]any{"name": sidecarVolume, "mountPath": sidecarMount}
	spec["volumes"] = append(asList(spec["volumes"]), map[string]any{
		"name": sidecarVolume, "emptyDir": map[string]any{"sizeLimit": "64Mi"},
	})
	container["volumeMounts"] = append(asList(container["volumeMounts"]), mount)
	// First: whatever the pod initialises may report as well.
	spec["initContainers"] = append([]any{s.container(mount)}, asList(spec["initContainers"])...)
	return nil
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func (s *sidecar) container(mount map[string]any) map[string]any {
	args := func(more ...any) []any {
		return append([]any{"job-sidecar", "--dir", sidecarMount, "--objective", s.objective, "--metrics-file", s.file}, more...)
	}
	return map[string]any{
		"name": sidecarName, "image": s.image, "imagePullPolicy": s.policy, "restartPolicy": "Always",
		"command": []any{"/worker"}, "args": args(),
		// The program starts after this: its report file is there then, and
		// may be written by whichever user it runs as.
		"lifecycle": map[string]any{"postStart": map[string]any{"exec": map[string]any{
			"command": append([]any{"/worker"}, args("--prepare")...),
		}}},
		"volumeMounts":             []any{mount},
		"terminationMessagePolicy": "File",
		"resources": map[string]any{
			"requests": map[string]any{"cpu": "5m", "memory": "32Mi"},
			"limits":   map[string]any{"memory": "128Mi"},
		},
		"securityContext": map[string]any{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": int64(65532),
			"capabilities":   map[string]any{"drop": []any{"ALL"}},
			"seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
	}
}
