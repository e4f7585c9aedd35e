// Package telemetry sets up OpenTelemetry and holds every span, attribute,
// metric and log key name that Fantasia uses.
package telemetry

import "go.opentelemetry.io/otel/attribute"

// ScopeName is the instrumentation scope of all of Fantasia's telemetry.
const ScopeName = "github.com/fantasia-hpo/fantasia"

// The spans of a trial's trace, in the order of a trial's way. SpanTrial is the
// root; the others are its children.
const (
	SpanTrial    = "trial"
	SpanSuggest  = "suggest"
	SpanCommit   = "commit"
	SpanQueue    = "queue"
	SpanClaim    = "claim"
	SpanEvaluate = "evaluate"
	SpanReport   = "report"
	SpanFold     = "fold"
)

// The attributes of spans.
const (
	AttrStudyID     = attribute.Key("fantasia.study.id")
	AttrStudyName   = attribute.Key("fantasia.study.name")
	AttrTrial       = attribute.Key("fantasia.trial.number")
	AttrTrialState  = attribute.Key("fantasia.trial.state")
	AttrAttempt     = attribute.Key("fantasia.attempt.number")
	AttrWorker      = attribute.Key("fantasia.worker.name")
	AttrSlot        = attribute.Key("fantasia.worker.slot")
	AttrPool        = attribute.Key("fantasia.pool")
	AttrOutcome     = attribute.Key("fantasia.attempt.outcome")
	AttrDisposition = attribute.Key("fantasia.result.disposition")
	AttrSource      = attribute.Key("fantasia.suggestion.source")
	AttrStaleness   = attribute.Key("fantasia.suggestion.staleness")
	AttrPending     = attribute.Key("fantasia.suggestion.pending")
	AttrAlgorithm   = attribute.Key("fantasia.algorithm")
	AttrValue       = attribute.Key("fantasia.trial.value")
	AttrEpoch       = attribute.Key("fantasia.epoch")
)

// The metrics; durations are in seconds.
const (
	MetricQueueWait      = "fantasia.trial.queue_wait"
	MetricEvaluation     = "fantasia.trial.evaluation"
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
	MetricResults        = "fantasia.results"
	MetricRepublished    = "fantasia.assignments.republished"
	MetricWorkerSpool    = "fantasia.worker.spool"
	MetricWorkerRunning  = "fantasia.worker.running"
	MetricWorkerAttempts = "fantasia.worker.attempts"
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
