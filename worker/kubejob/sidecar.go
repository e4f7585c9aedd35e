package kubejob

import (
	"fmt"
	"path"

	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
)

// The names that the sidecar adds to a pod.
const (
	sidecarName   = "fantasia-report"
	sidecarVolume = "fantasia-report"
	sidecarMount  = "/var/run/fantasia"
	// eventsVolume is the program's folder of event files, which the sidecar has at eventsMount.
	eventsVolume = "fantasia-events"
	eventsMount  = "/var/run/fantasia-events"
	// workerPath is the path of the worker in its own image.
	workerPath = "/usr/local/bin/worker"
)

// sidecar is the native sidecar that takes a program's reports. The program's own
// command is not changed.
type sidecar struct {
	image, policy, attempt string
	events                 string // metrics.events; empty for none
}

// variables tell the program about the sidecar.
func (s *sidecar) variables() []variable {
	return []variable{
		{name: "FANTASIA_REPORT", value: sidecarMount + "/" + jobsidecar.ReportFile},
		{name: "FANTASIA_TRIAL_DIR", value: sidecarMount},
		{name: "FANTASIA_SIDECAR", value: "http://" + jobsidecar.Address},
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
	own := s.container(mount)
	if s.events != "" {
		s.share(spec, container, own)
	}
	// It comes first, as other init containers may report too.
	spec["initContainers"] = append([]any{own}, asList(spec["initContainers"])...)
	return nil
}

// share gives the program a folder for its event files, which the sidecar can read. They may be
// large, so only the pod's own limits on storage bound them.
func (s *sidecar) share(spec, container, own map[string]any) {
	at := s.events
	if !path.IsAbs(at) {
		at = path.Join(sidecarMount, at)
	}
	spec["volumes"] = append(asList(spec["volumes"]), map[string]any{"name": eventsVolume, "emptyDir": map[string]any{}})
	container["volumeMounts"] = append(asList(container["volumeMounts"]), map[string]any{"name": eventsVolume, "mountPath": at})
	own["volumeMounts"] = append(asList(own["volumeMounts"]), map[string]any{"name": eventsVolume, "mountPath": eventsMount, "readOnly": true})
	own["args"] = append(asList(own["args"]), "--events", eventsMount)
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func (s *sidecar) container(mount map[string]any) map[string]any {
	return map[string]any{
		"name": sidecarName, "image": s.image, "imagePullPolicy": s.policy, "restartPolicy": "Always",
		"command": []any{workerPath}, "args": []any{"job-sidecar", "--dir", sidecarMount},
		"env": []any{map[string]any{"name": "FANTASIA_ATTEMPT_JSON", "value": escape(s.attempt)}},
		// The program starts after this hook: its report file then exists, and any user
		// may write to it.
		"lifecycle": map[string]any{"postStart": map[string]any{"exec": map[string]any{
			"command": []any{workerPath, "job-sidecar", "--dir", sidecarMount, "--prepare"},
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
