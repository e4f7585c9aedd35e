package kubejob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// The labels of an attempt's resources.
const (
	LabelStudy   = "fantasia.dev/study"
	LabelTrial   = "fantasia.dev/trial"
	LabelAttempt = "fantasia.dev/attempt"
	LabelNonce   = "fantasia.dev/nonce"
	LabelPool    = "fantasia.dev/pool"
	LabelWorker  = "fantasia.dev/worker"
	// LabelSlot is the slot of a Job whose program evaluates one trial after another.
	LabelSlot = "fantasia.dev/slot"
	// LabelJob is, on a pod, the name of its resource.
	LabelJob = "fantasia.dev/job"
	// LabelReports is "true" on the pods whose program reports, if the operator chose them.
	LabelReports = "fantasia.dev/reports"
	// LabelConcluded is "true" once the attempt's result is on the worker's disk.
	LabelConcluded = "fantasia.dev/concluded"
	// LabelStored is "true" on the Job of a failed attempt once the leader has stored its result.
	LabelStored = "fantasia.dev/stored"
	// AnnotationAttempt holds the attempt, for a restarted worker.
	AnnotationAttempt = "fantasia.dev/attempt-json"
)

// maxJobName is the largest length of a resource's name: names of pods, and of what
// operators derive, must fit into 63 characters with their suffixes.
const maxJobName = 50

// JobName returns the name of an attempt's resource: the study's name, the trial and
// the attempt for people, and a hash that is unique to the attempt.
func JobName(a *messaging.Assignment) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%s", a.Study, a.Trial, a.Attempt, a.Nonce))
	suffix := fmt.Sprintf("-%d-%d-%s", a.Trial, a.Attempt, hex.EncodeToString(sum[:4]))
	return head(strings.ToLower(a.StudyName), maxJobName-len(suffix)) + suffix
}

// head returns the beginning of a text in the form of the beginning of a DNS label, at
// most n characters, or "study" if nothing is left.
func head(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, text)
	// The name of a Service, which operators create, must begin with a letter.
	text = strings.TrimLeft(text, "-0123456789")
	text = strings.TrimRight(text[:min(len(text), max(n, 0))], "-")
	if text == "" {
		return "study"
	}
	return text
}

// labelValue returns a text as a label's value: unchanged if it is valid, otherwise its
// beginning and a hash.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return head(strings.ToLower(text), 40) + "-" + hex.EncodeToString(sum[:8])
}

// labels returns the labels of an attempt's resource and its pods.
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
