package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// exportEvery is the maximum time before ended spans are exported, unless
// OTEL_BSP_SCHEDULE_DELAY is set. It is short because a killed process loses the spans
// that still wait.
const exportEvery = time.Second

// Options name a process and the destination of its logs.
type Options struct {
	// Service and Version become the resource's service.name and service.version;
	// OTEL_SERVICE_NAME overrides Service.
	Service, Version string
	// Instance becomes service.instance.id: the name of a replica or a worker; empty
	// omits it. OTEL_RESOURCE_ATTRIBUTES overrides it.
	Instance string
	// Logs receives log records as text; nil discards them.
	Logs io.Writer
	// Level is the lowest level that is logged.
	Level slog.Level
}

// Telemetry is a process's tracer, meter and logger. Nothing is exported unless the
// standard OTEL_* environment variables ask for it; metrics can always be scraped
// through MetricsHandler. It sets no globals, so several can exist in one process. It
// is safe for concurrent use.
type Telemetry struct {
	tracers  trace.TracerProvider
	exporter *sdktrace.TracerProvider // nil if no traces are exported
	exports  Exports
	meters   *sdkmetric.MeterProvider
	logs     *sdklog.LoggerProvider
	registry *prometheus.Registry
	logger   *slog.Logger
}

// Setup starts telemetry for a process. The caller MUST call Shutdown to flush it.
func Setup(ctx context.Context, o Options) (*Telemetry, error) {
	res, err := resource.New(ctx,
		resource.WithAttributes(identity(o)...),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("describe this process to OpenTelemetry: %w", err)
	}
	t := &Telemetry{registry: prometheus.NewRegistry()}
	if err := t.setupLogs(ctx, res, o); err != nil { // the others log
		return nil, err
	}
	if err := t.setupTraces(ctx, res); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	if err := t.setupMetrics(ctx, res); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

// wanted reports whether the environment asks to export a signal (TRACES, METRICS or
// LOGS) by naming an exporter or an endpoint.
func wanted(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	return cmp.Or(os.Getenv("OTEL_"+signal+"_EXPORTER"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
		os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT")) != ""
}

func (t *Telemetry) setupTraces(ctx context.Context, res *resource.Resource) error {
	if !wanted("TRACES") {
		// It costs next to nothing, and passes on any trace that it receives.
		t.tracers = tracenoop.NewTracerProvider()
		return nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("set up the trace exporter that OTEL_* asks for: %w", err)
	}
	batch := []sdktrace.BatchSpanProcessorOption{}
	if os.Getenv("OTEL_BSP_SCHEDULE_DELAY") == "" {
		batch = append(batch, sdktrace.WithBatchTimeout(exportEvery))
	}
	t.exporter = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithIDGenerator(idGenerator{}),
		sdktrace.WithBatcher(newTelling(exporter, &t.exports, t.logger), batch...))
	t.tracers, t.exports.provider = t.exporter, t.exporter
	return nil
}

func (t *Telemetry) setupMetrics(ctx context.Context, res *resource.Resource) error {
	scrape, err := otelprom.New(otelprom.WithRegisterer(t.registry))
	if err != nil {
		return fmt.Errorf("set up Prometheus metrics: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(scrape)}
	if wanted("METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return fmt.Errorf("set up the metric exporter that OTEL_* asks for: %w", err)
		}
		options = append(options, sdkmetric.WithReader(reader))
	}
	t.meters = sdkmetric.NewMeterProvider(options...)
	return nil
}

func (t *Telemetry) setupLogs(ctx context.Context, res *resource.Resource, o Options) error {
	var handlers []slog.Handler
	if o.Logs != nil {
		handlers = append(handlers, slog.NewTextHandler(o.Logs, &slog.HandlerOptions{Level: o.Level}))
	}
	if wanted("LOGS") {
		exporter, err := autoexport.NewLogExporter(ctx)
		if err != nil {
			return fmt.Errorf("set up the log exporter that OTEL_* asks for: %w", err)
		}
		t.logs = sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
		handlers = append(handlers, otelslog.NewHandler(ScopeName, otelslog.WithLoggerProvider(t.logs)))
	}
	t.logger = slog.New(slog.NewMultiHandler(handlers...))
	return nil
}

// Logger returns the process's logger.
func (t *Telemetry) Logger() *slog.Logger { return t.logger }

// Tracer returns Fantasia's tracer.
func (t *Telemetry) Tracer() trace.Tracer { return t.tracers.Tracer(ScopeName) }

// TracerProvider returns the provider, for instrumentation of other libraries.
func (t *Telemetry) TracerProvider() trace.TracerProvider { return t.tracers }

// Exports tells which spans have been exported; none if no traces are.
func (t *Telemetry) Exports() *Exports { return &t.exports }

// Meter returns Fantasia's meter.
func (t *Telemetry) Meter() metric.Meter { return t.meters.Meter(ScopeName) }

// MeterProvider returns the provider, for instrumentation of other libraries.
func (t *Telemetry) MeterProvider() metric.MeterProvider { return t.meters }

// MetricsHandler serves the metrics in Prometheus's text format, with exemplars if the
// scraper asks for OpenMetrics.
func (t *Telemetry) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Shutdown flushes and stops everything before ctx ends. It may be called again.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	if t.exporter != nil {
		errs = append(errs, t.exporter.Shutdown(ctx))
	}
	if t.meters != nil {
		errs = append(errs, t.meters.Shutdown(ctx))
	}
	if t.logs != nil {
		errs = append(errs, t.logs.Shutdown(ctx))
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, sdkmetric.ErrReaderShutdown) {
		return fmt.Errorf("flush telemetry: %w", err)
	}
	return nil
}

// serviceNamespace is the service.namespace unless OTEL_RESOURCE_ATTRIBUTES sets another,
// as on Kubernetes.
const serviceNamespace = "fantasia"

// identity returns the resource attributes that identify this process.
func identity(o Options) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		semconv.ServiceName(o.Service), semconv.ServiceVersion(o.Version), semconv.ServiceNamespace(serviceNamespace),
	}
	if o.Instance != "" {
		attrs = append(attrs, semconv.ServiceInstanceID(o.Instance))
	}
	return attrs
}
