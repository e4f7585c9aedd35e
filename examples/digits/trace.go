package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// flushTimeout bounds how long the last spans may take to their backend.
const flushTimeout = 5 * time.Second

// tracing starts OpenTelemetry where OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_TRACES_EXPORTER ask for it. The returned context's span is the one that
// TRACEPARENT names: whoever started this process has it. flush must be called.
func tracing(ctx context.Context) (_ context.Context, _ trace.Tracer, flush func() error, err error) {
	if os.Getenv("OTEL_TRACES_EXPORTER") == "" && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" &&
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return ctx, tracenoop.NewTracerProvider().Tracer(""), func() error { return nil }, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("set tracing up: %w", err)
	}
	described, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("digits"), semconv.ProcessPID(os.Getpid())),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, nil, fmt.Errorf("describe this process to OpenTelemetry: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(described), sdktrace.WithBatcher(exporter))
	flush = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		return provider.Shutdown(ctx)
	}
	parent := propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT"), "tracestate": os.Getenv("TRACESTATE")}
	return propagation.TraceContext{}.Extract(ctx, parent), provider.Tracer("digits"), flush, nil
}

// traced runs f in a span and ends the span with f's error.
func traced(ctx context.Context, tracer trace.Tracer, name string, f func(context.Context, trace.Span) error) error {
	ctx, span := tracer.Start(ctx, name)
	defer span.End()
	err := f(ctx, span)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}
