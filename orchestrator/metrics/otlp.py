"""Sends spans and metrics to an OpenTelemetry collector, as the usual `OTEL_*` variables say. The only module that imports
`opentelemetry`, and only if an endpoint is set: the extra `otel` installs it.

Sending is the work of the library's own threads; a collector that is away costs spans, never a request.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import structlog

from orchestrator.system.telemetry import NoTelemetry, SpanRecord, Telemetry

log = structlog.get_logger()

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
SCOPE = "benchyard"


def open_telemetry(env: Mapping[str, str]) -> Telemetry:
    """What the environment asks for. Without the library, a warning says how to get it."""
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true" or not any(env.get(name) for name in ENDPOINTS):
        return NoTelemetry()
    try:
        importlib.import_module("opentelemetry.sdk.trace")
        importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        log.warning("telemetry off", action="telemetry_off", detail=f"install benchyard[otel]: {error}")
        return NoTelemetry()
    protocol = env.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if protocol != "http/protobuf":
        log.warning(
            "telemetry protocol", action="telemetry_protocol", detail=f"{protocol} is not there: http/protobuf is used"
        )
    return OtlpTelemetry(env)


class OtlpTelemetry:
    """Durations of calls and requests and tokens of calls are metrics too, by the conventions' names."""

    wanted = True

    def __init__(self, env: Mapping[str, str]) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = bool(env.get("OTEL_SERVICE_NAME")) or "service.name=" in env.get("OTEL_RESOURCE_ATTRIBUTES", "")
        self._resource = Resource.create({} if named else {SERVICE_NAME: SCOPE})
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler
        with_traces = env.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp" and _has_endpoint(env, "TRACES")
        self._processor: Any = BatchSpanProcessor(OTLPSpanExporter()) if with_traces else None
        with_metrics = env.get("OTEL_METRICS_EXPORTER", "otlp") == "otlp" and _has_endpoint(env, "METRICS")
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if with_metrics else []
        self._meters = MeterProvider(readers, self._resource, shutdown_on_exit=False)
        meter = self._meters.get_meter(SCOPE)
        self._call_s = meter.create_histogram("gen_ai.client.operation.duration", "s", "Duration of model calls")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of model calls")
        self._request_s = meter.create_histogram("http.server.request.duration", "s", "Duration of requests")

    def record(self, span: SpanRecord) -> None:
        self._measure(span)
        if self._processor is not None and self._sampled(span):
            self._processor.on_end(self._readable(span))

    def close(self) -> None:
        """Sends what is left; waits for the collector as long as the library's time-outs say."""
        if self._processor is not None:
            self._processor.shutdown()
        self._meters.shutdown()

    def _sampled(self, span: SpanRecord) -> bool:
        """By the trace's id alone, so that a run's spans are all there or all missing."""
        decision: Any = self._sampler.should_sample(None, span.trace_id, span.name).decision
        return bool(decision.is_sampled())

    def _readable(self, span: SpanRecord) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: int) -> SpanContext:
            return SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        return ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=None if span.parent_id is None else context(span.parent_id),
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=SpanKind[span.kind.upper()],
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=int(span.started_at.timestamp() * 1e9),
            end_time=int(span.ended_at.timestamp() * 1e9),
            instrumentation_scope=InstrumentationScope(SCOPE),
        )

    def _measure(self, span: SpanRecord) -> None:
        seconds = (span.ended_at - span.started_at).total_seconds()
        if span.kind == "server":
            names = ("http.request.method", "http.route", "http.response.status_code", "error.type")
            self._request_s.record(seconds, _some(span, names))
        elif "gen_ai.operation.name" in span.attributes:
            which = _some(span, ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"))
            self._call_s.record(seconds, which)
            for direction in ("input", "output"):
                tokens = span.attributes.get(f"gen_ai.usage.{direction}_tokens")
                if isinstance(tokens, int):
                    self._tokens.record(tokens, {**which, "gen_ai.token.type": direction})


def _has_endpoint(env: Mapping[str, str], signal: str) -> bool:
    return bool(env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or env.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))


def _some(span: SpanRecord, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: span.attributes[name] for name in names if name in span.attributes}
