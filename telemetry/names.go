// Package telemetry sets up OpenTelemetry and holds every span, attribute,
// metric and log key name that Fantasia uses.
package telemetry

import "go.opentelemetry.io/otel/attribute"

// ScopeName is the instrumentation scope of all of Fantasia's telemetry.
const ScopeName = "github.com/fantasia-hpo/fantasia"

// The spans of a trial's trace, in order. SpanTrial is the root. Its children follow
// each other without a gap, so that their durations add up to the root's: the times in
// the ledger are cut into spans, and each span ends where the next begins.
const (
	SpanTrial   = "trial"
	SpanSuggest = "suggest" // the optimiser answers; linked to its SpanRefit
	SpanReady   = "ready"   // the suggestion waits for a slot; omitted if it does not wait
	SpanCommit  = "commit"  // the trial's attempt is made durable in the ledger
	SpanPublish = "publish" // its assignment is brought to the broker
	SpanQueue   = "queue"   // the assignment waits at the broker for a worker
	// SpanClaim and SpanEvaluate are the worker's; spans of the program are children of
	// SpanEvaluate, and so are those of the phases of a Job, which are named after
	// messaging.Phase. If the worker is lost, the leader emits SpanLost instead.
	SpanClaim    = "claim"
	SpanEvaluate = "evaluate"
	SpanLost     = "lost"
	SpanReport   = "report" // the result travels from the worker's disk through the broker to the leader's loop
	SpanFold     = "fold"   // the leader applies the result and commits it
)

const (
	// SpanSend is the worker's part of SpanReport, a child of it: it ends when the
	// broker has acknowledged the result.
	SpanSend = "send"
	// SpanRefit is an answer of the optimiser, in a trace of its own, since one answer
	// makes several trials. It links to the trials that it learnt from, and each
	// SpanSuggest links to it.
	SpanRefit = "refit"
)

// The attributes of spans.
const (
	AttrStudyID      = attribute.Key("fantasia.study.id")
	AttrStudyName    = attribute.Key("fantasia.study.name")
	AttrTrial        = attribute.Key("fantasia.trial.number")
	AttrTrialState   = attribute.Key("fantasia.trial.state")
	AttrAttempt      = attribute.Key("fantasia.attempt.number")
	AttrWorker       = attribute.Key("fantasia.worker.name")
	AttrSlot         = attribute.Key("fantasia.worker.slot")
	AttrPool         = attribute.Key("fantasia.pool")
	AttrQuota        = attribute.Key("fantasia.quota")
	AttrHolder       = attribute.Key("fantasia.quota.holder")
	AttrAttemptState = attribute.Key("fantasia.attempt.state")
	AttrOutcome      = attribute.Key("fantasia.attempt.outcome")
	AttrDisposition  = attribute.Key("fantasia.result.disposition")
	AttrSource       = attribute.Key("fantasia.suggestion.source")
	AttrStaleness    = attribute.Key("fantasia.suggestion.staleness")
	AttrPending      = attribute.Key("fantasia.suggestion.pending")
	AttrAlgorithm    = attribute.Key("fantasia.algorithm")
	AttrValue        = attribute.Key("fantasia.trial.value")
	AttrPhase        = attribute.Key("fantasia.phase") // messaging.Phase's name
	AttrEpoch        = attribute.Key("fantasia.epoch")
	// AttrMean, AttrSD and AttrNote give the reasons for a point. AttrParameter is the
	// prefix of its values, AttrAcquisition that of the acquisition values.
	AttrMean        = attribute.Key("fantasia.suggestion.mean")
	AttrSD          = attribute.Key("fantasia.suggestion.sd")
	AttrNote        = attribute.Key("fantasia.suggestion.note")
	AttrParameter   = "fantasia.parameter."
	AttrAcquisition = "fantasia.suggestion.acquisition."
	AttrReason      = attribute.Key("fantasia.failure.reason")
	// AttrRequest, AttrSuggestions, AttrObservations and AttrFolded describe a refit:
	// the number that seeds it, how many points were requested, how many observations
	// it used, and how many of them were new since the refit before.
	AttrRequest      = attribute.Key("fantasia.refit.request")
	AttrSuggestions  = attribute.Key("fantasia.refit.suggestions")
	AttrObservations = attribute.Key("fantasia.refit.observations")
	AttrFolded       = attribute.Key("fantasia.refit.folded")
)

// MessagingSystem is the value of messaging.system: the broker of the wire contract.
const MessagingSystem = "nats"

// The metrics; durations are in seconds.
const (
	MetricQueueWait      = "fantasia.trial.queue_wait"
	MetricEvaluation     = "fantasia.trial.evaluation"
	MetricPhase          = "fantasia.trial.phase"
	MetricOverhead       = "fantasia.trial.overhead"
	MetricSuggest        = "fantasia.optimizer.suggest"
	MetricStaleness      = "fantasia.suggestion.staleness"
	MetricTrials         = "fantasia.trials.ended"
	MetricPending        = "fantasia.trials.pending"
	MetricSlots          = "fantasia.pool.slots"
	MetricFreeSlots      = "fantasia.pool.slots.free"
	MetricUseful         = "fantasia.pool.useful_parallelism"
	MetricTakeovers      = "fantasia.leader.takeovers"
	MetricLeading        = "fantasia.leader.leading"
	MetricCommit         = "fantasia.ledger.commit"
	MetricLedgerSize     = "fantasia.ledger.size"
	MetricLedgerUsed     = "fantasia.ledger.used"
	MetricLedgerQuota    = "fantasia.ledger.quota"
	MetricQuotaUsed      = "fantasia.quota.used"
	MetricQuotaLimit     = "fantasia.quota.limit"
	MetricResults        = "fantasia.results"
	MetricRepublished    = "fantasia.assignments.republished"
	MetricWorkerSpool    = "fantasia.worker.spool"
	MetricWorkerRunning  = "fantasia.worker.running"
	MetricWorkerAttempts = "fantasia.worker.attempts"
	MetricAttempts       = "fantasia.attempts.ended"
	MetricStudies        = "fantasia.studies.running"
	MetricBest           = "fantasia.study.best"
	MetricRecommended    = "fantasia.study.recommended"
	MetricHypervolume    = "fantasia.study.hypervolume"
	MetricWorkers        = "fantasia.pool.workers"
	MetricIdle           = "fantasia.pool.slots.idle"
	MetricSuggestErrors  = "fantasia.optimizer.errors"
	MetricAside          = "fantasia.dead_letters.set_aside"
	MetricRefused        = "fantasia.dead_letters.refused"
	MetricWorkerSlots    = "fantasia.worker.slots"
	MetricWorkerBusy     = "fantasia.worker.busy"
)

// The keys of log records.
const (
	LogStudy   = "study"
	LogTrial   = "trial"
	LogAttempt = "attempt"
	LogWorker  = "worker"
	LogPool    = "pool"
	LogEpoch   = "epoch"
	LogError   = "error"
	LogReason  = "reason"
)
