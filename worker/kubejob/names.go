package kubejob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// The labels of what is made for an attempt.
const (
	LabelStudy   = "fantasia.dev/study"
	LabelTrial   = "fantasia.dev/trial"
	LabelAttempt = "fantasia.dev/attempt"
	LabelNonce   = "fantasia.dev/nonce"
	LabelPool    = "fantasia.dev/pool"
	LabelWorker  = "fantasia.dev/worker"
	// LabelJob names, on a pod, the resource that it is of.
	LabelJob = "fantasia.dev/job"
	// LabelConcluded is "true" once the attempt's result is on the worker's disk.
	LabelConcluded = "fantasia.dev/concluded"
	// AnnotationAttempt holds the attempt, for a worker that was restarted.
	AnnotationAttempt = "fantasia.dev/attempt-json"
)

// maxJobName bounds the names of resources: names of pods, and of what operators
// make of them, must fit into 63 characters with suffixes of theirs.
const maxJobName = 50

// JobName is the name of an attempt's resource: the study's, the trial and the
// attempt for people, and a hash that no other attempt has.
func JobName(a *messaging.Assignment) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%s", a.Study, a.Trial, a.Attempt, a.Nonce))
	suffix := fmt.Sprintf("-%d-%d-%s", a.Trial, a.Attempt, hex.EncodeToString(sum[:4]))
	return head(strings.ToLower(a.StudyName), maxJobName-len(suffix)) + suffix
}

// head is the beginning of a text as the beginning of a DNS label, at most n
// characters, "study" where nothing is left.
func head(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, text)
	// A label of a Service, which operators make, begins with a letter.
	text = strings.TrimLeft(text, "-0123456789")
	text = strings.TrimRight(text[:min(len(text), max(n, 0))], "-")
	if text == "" {
		return "study"
	}
	return text
}

// labelValue is a text as the value of a label: itself where it may be one,
// otherwise its beginning and a hash.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return head(strings.ToLower(text), 40) + "-" + hex.EncodeToString(sum[:8])
}

// labels are those of an attempt's resource and of its pods.
func labels(a *messaging.Assignment, worker string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/managed-by": "fantasia",
		LabelJob:                       JobName(a),
		LabelStudy:                     labelValue(a.StudyName),
		LabelTrial:                     fmt.Sprint(a.Trial),
		LabelAttempt:                   fmt.Sprint(a.Attempt),
		LabelNonce:                     labelValue(a.Nonce),
		LabelPool:                      labelValue(a.Pool),
		LabelWorker:                    labelValue(worker),
	}
}
