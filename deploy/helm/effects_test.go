package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// differing holds values that differ from the defaults, for those that cannot be
// derived.
var differing = map[string]string{
	"image.pullPolicy":                                `"Always"`,
	"coordinator.leaseTTL":                            `"9s"`,
	"coordinator.workerLease":                         `"45s"`,
	"coordinator.antiAffinity":                        `"hard"`,
	"coordinator.service.type":                        `"NodePort"`,
	"coordinator.affinity":                            `{"nodeAffinity":{}}`,
	"coordinator.extraEnv":                            `[{"name":"A","value":"b"}]`,
	"coordinator.podDisruptionBudget.maxUnavailable":  `"50%"`,
	"poolDefaults.allowStudyCommands":                 `false`,
	"poolDefaults.imagePullPolicy":                    `"Always"`,
	"poolDefaults.podDisruptionBudget.maxUnavailable": `2`,
	"poolDefaults.kubejob.ttl":                        `"2h"`,
	"poolDefaults.kubejob.startTimeout":               `"5m"`,
	"poolDefaults.kubejob.queueTimeout":               `"5h"`,
	"poolDefaults.heartbeat":                          `"7s"`,
	"poolDefaults.strategy.type":                      `"Recreate"`,
	"poolDefaults.strategy.maxUnavailable":            `2`,
	"poolDefaults.state.keepTrials":                   `"3Gi"`,
	"poolDefaults.state.type":                         `"persistentVolumeClaim"`,
	"poolDefaults.state.whenScaled":                   `"Delete"`,
	"poolDefaults.state.whenDeleted":                  `"Delete"`,
	"poolDefaults.env":                                `[{"name":"A","value":"b"}]`,
	"poolDefaults.envFrom":                            `[{"secretRef":{"name":"a"}}]`,
	"poolDefaults.volumes":                            `[{"name":"a","emptyDir":{}}]`,
	"poolDefaults.volumeMounts":                       `[{"name":"tmp","mountPath":"/scratch"}]`,
	"poolDefaults.affinity":                           `{"nodeAffinity":{}}`,
	"poolDefaults.topologySpreadConstraints":          `[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]`,
	"poolDefaults.podSecurityContext":                 `{"runAsUser":1000}`,
	"poolDefaults.securityContext":                    `{"readOnlyRootFilesystem":false}`,
	"poolDefaults.egress":                             `[{"ports":[{"port":443}]}]`,
	"poolDefaults.autoscaling.method":                 `"keda"`,
	"coordinator.quotas":                              `["studies=7"]`,
	"nats.bundled.accounts":                           `true`,
	"nats.streamReplicas":                             `3`,
	"nats.bundled.replicas":                           `3`,
	"nats.bundled.affinity":                           `{"nodeAffinity":{}}`,
	"nats.bundled.persistence.size":                   `"7Gi"`,
	"etcd.bundled.replicas":                           `3`,
	"etcd.bundled.affinity":                           `{"nodeAffinity":{}}`,
	"studies.pools":                                   `{"*":["other"]}`,
	"studies.jobs":                                    `{"tuning":{}}`,
	"studies.kinds":                                   `{"JobSet":{"apiVersion":"jobset.x-k8s.io/v1alpha2","resource":"jobsets","pods":["spec.replicatedJobs.*.template.spec.template"]}}`,
	"poolDefaults.kubejob.allowStudyJobs":             `true`,
	"telemetry.otlpEndpoint":                          `"http://b:1"`,
	"telemetry.otlpProtocol":                          `"grpc"`,
	"networkPolicy.kubernetesPorts":                   `[8443]`,
	"networkPolicy.dnsPorts":                          `[5353]`,
	"networkPolicy.oidcPorts":                         `[8443]`,
	"coordinator.oidc.issuer":                         `"https://issuer.example.com"`,
	"coordinator.oidc.keys":                           `"https://issuer.example.com/keys"`,
	"coordinator.oidc.grants":                         `["groups=ml write ml-"]`,
	"coordinator.requireToken":                        `true`,
}

// needed holds what must be set for a value to have an effect, by the longest prefix.
var needed = map[string][]string{
	"poolDefaults.kubejob.":                {`poolDefaults.kubejob.template="kind: Job"`},
	"poolDefaults.kubejob.template":        nil,
	"studies.kinds":                        {`studies.jobs={"tuning":{}}`},
	"poolDefaults.kubejob.allowStudyJobs":  {`studies.jobs={"tuning":{}}`},
	"poolDefaults.state.storageClassName":  {`poolDefaults.state.type="persistentVolumeClaim"`},
	"poolDefaults.state.whenScaled":        {`poolDefaults.state.type="persistentVolumeClaim"`},
	"poolDefaults.state.whenDeleted":       {`poolDefaults.state.type="persistentVolumeClaim"`},
	"poolDefaults.autoscaling.method":      nil,
	"poolDefaults.gpuResource":             {`poolDefaults.gpus=1`},
	"poolDefaults.podDisruptionBudget.max": {`poolDefaults.podDisruptionBudget.enabled=true`},
	"poolDefaults.autoscaling.":            {`poolDefaults.autoscaling.method="keda"`},
	"poolDefaults.image":                   nil,
	"poolDefaults.allowStudyCommands":      {`poolDefaults.command=["a"]`},
	"poolDefaults.natsAuth.":               {`nats.urls=["nats://a:1"]`, `poolDefaults.natsAuth.user="u"`},
	"poolDefaults.natsAuth.user":           {`nats.urls=["nats://a:1"]`},
	"nats.auth.":                           {`nats.urls=["nats://a:1"]`},
	"nats.auth.coordinator.passwordSecret": {`nats.urls=["nats://a:1"]`, `nats.auth.coordinator.user="u"`},
	"nats.auth.worker.passwordSecret":      {`nats.urls=["nats://a:1"]`, `nats.auth.worker.user="u"`},
	"nats.tls.":                            {`nats.urls=["tls://a:1"]`},
	"nats.bundled.persistence.size":        {`nats.bundled.persistence.enabled=true`},
	"etcd.auth.passwordSecret":             {`etcd.auth.user="u"`},
	"nats.streamReplicas":                  {`nats.bundled.replicas=3`},
	"networkPolicy.natsTo":                 {`nats.urls=["nats://a:1"]`},
	"networkPolicy.etcdTo":                 {`etcd.urls=["http://a:1"]`},
	"networkPolicy.katibFrom":              {`coordinator.katib.enabled=true`},
	"coordinator.tokensSecret":             {"coordinator.requireToken=true", `coordinator.tokensSecret="a"`},
	"coordinator.oidc.":                    {"coordinator.requireToken=true", `coordinator.oidc.issuer="https://a"`},
	"coordinator.oidc.issuer":              {"coordinator.requireToken=true", `coordinator.tokensSecret="a"`},
	"networkPolicy.oidc":                   {"coordinator.requireToken=true", `coordinator.oidc.issuer="https://a"`},
	"networkPolicy.otlp":                   {`telemetry.otlpEndpoint="http://a:1"`},
	"networkPolicy.kubernetes":             {`studies.enabled=true`},
	"tls.issuer.":                          {"tls.enabled=true", `tls.issuer.name="a"`},
	"telemetry.otlpProtocol":               {`telemetry.otlpEndpoint="http://a:1"`},
	"studies.":                             {`studies.enabled=true`},
	"studies.enabled":                      nil,
	"metrics.serviceMonitor.":              {`metrics.serviceMonitor.enabled=true`},
	"metrics.serviceMonitor.enabled":       nil,
	"metrics.rules.enabled":                {`metrics.serviceMonitor.enabled=true`},
	"metrics.rules.labels":                 {`metrics.serviceMonitor.enabled=true`, `metrics.rules.enabled=true`},
	"metrics.dashboard.":                   {`metrics.dashboard.enabled=true`},
	"metrics.dashboard.enabled":            nil,
	"autoscaling.":                         {`poolDefaults.autoscaling.method="keda"`},
}

// chartValues returns the chart's values.
func chartValues(t *testing.T) *Value {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseValues(file)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryValueHasAnEffect changes one value at a time.
func TestEveryValueHasAnEffect(t *testing.T) {
	all := chartValues(t)
	for _, v := range all.Leaves() {
		t.Run(v.Name(), func(t *testing.T) {
			t.Parallel()
			if v.Name() == "pools" {
				return // every other test sets them
			}
			base := values(prerequisites(v.Name())...)
			before := body(render(t, base...))
			changed := append(base, "--set-json="+v.Name()+"="+another(t, v))
			if before == body(render(t, changed...)) {
				t.Errorf("%s changes nothing", changed[len(changed)-1])
			}
		})
	}
}

func prerequisites(name string) []string {
	longest := ""
	for prefix := range needed {
		if strings.HasPrefix(name, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return needed[longest]
}

// another returns a value, as JSON, that differs from v's default.
func another(t *testing.T, v *Value) string {
	t.Helper()
	if text, ok := differing[v.Name()]; ok {
		return text
	}
	if items, ok := v.Schema["items"].(map[string]any); ok {
		switch items["$ref"] {
		case "#/$defs/Toleration":
			return `[{"key":"a","operator":"Exists"}]`
		case "#/$defs/NetworkPolicyPeer":
			return `[{"podSelector":{"matchLabels":{"a":"b"}}}]`
		}
	}
	var next any
	switch d := v.Default.(type) {
	case bool:
		next = !d
	case int:
		next = d + 1
	case string:
		next = d + "7"
	case []any:
		next = append(d, "other")
	case map[string]any:
		next = map[string]any{"other": "value"}
		if v.Schema["$ref"] == "#/$defs/ResourceRequirements" {
			next = map[string]any{"requests": map[string]any{"cpu": "7"}}
		}
	default:
		t.Fatalf("the default is %T", d)
	}
	text, err := json.Marshal(next)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", v.Name(), err))
	}
	return string(text)
}

// body returns a rendered chart without helm's comments on the sources.
func body(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
