package helm

import (
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
)

// positiveDuration matches durations above zero, as flags read them.
const positiveDuration = `^[1-9][0-9]*(ms|s|m|h)$`

// programChecks returns what the programs accept of the values that they check when they
// start, as JSON Schema by the value's name. Helm then refuses a value that would only
// show in the log of a pod. Limits come from the programs' own constants.
func programChecks() map[string]map[string]any {
	return map[string]map[string]any{
		"coordinator.leaseTTL":                 {"pattern": wholeSeconds(election.MinTTL)},
		"coordinator.workerLease":              {"pattern": positiveDuration},
		"poolDefaults.heartbeat":               {"pattern": positiveDuration},
		"poolDefaults.kubejob.startTimeout":    {"pattern": positiveDuration},
		"poolDefaults.kubejob.queueTimeout":    {"pattern": positiveDuration},
		"poolDefaults.state.keepTrials":        {"pattern": workernode.SizePattern},
		"poolDefaults.autoscaling.maxReplicas": {"minimum": 1},
		"coordinator.oidc.issuer":              {"pattern": `^$|^https://[^/\s?#@]+(/[^\s?#]*)?$`},
		"coordinator.oidc.keys":                {"pattern": `^$|^https://[^/\s?#@]+(/[^\s?#]*)?$`},
		// Exporters silently ignore an address without a scheme.
		"telemetry.otlpEndpoint": {"pattern": `^$|^https?://[^/\s]+`},
	}
}

// wholeSeconds returns a pattern of durations in whole seconds, at least the given one,
// which must be below 10 s.
func wholeSeconds(least time.Duration) string {
	return fmt.Sprintf(`^([%d-9]|[1-9][0-9]+)s$`, least/time.Second)
}
