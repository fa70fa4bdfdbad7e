//! Traces over OTLP. One trace covers a run from the request to the commit, across both processes.
//!
//! The API stores the trace of a request in the job's row (as a W3C `traceparent`), and the worker continues it.

use std::fmt;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, layer};

/// The name of the header and of the column.
const TRACEPARENT: &str = "traceparent";

/// Returns a provider that sends the spans of `service` to `endpoint`, for example `http://collector:4318`.
pub(super) fn provider(endpoint: &str, service: &'static str) -> anyhow::Result<SdkTracerProvider> {
    // Several TLS libraries may be linked, so choose one. An error means that one is already chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .timeout(Duration::from_secs(10))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .context("preparing the HTTP client for traces")?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector { http, runtime: tokio::runtime::Handle::current() })
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .build()
        .context("OTEL_EXPORTER_OTLP_ENDPOINT is not a valid URL")?;
    let resource = Resource::builder().with_service_name(service).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Returns a layer that exports only our own spans, and the queries in them.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let ours = Targets::new()
        .with_target("retouch_core", LevelFilter::INFO)
        .with_target("retouch_api", LevelFilter::INFO)
        .with_target("retouch_worker", LevelFilter::INFO);
    let queries = Targets::new().with_target(QUERIES, LevelFilter::DEBUG);
    let tracer = provider.tracer("retouch");
    tracing_opentelemetry::layer()
        .with_tracer(tracer.clone())
        .with_filter(ours)
        .and_then(QuerySpans(tracer).with_filter(queries))
}

/// The target of sqlx's events.
const QUERIES: &str = "sqlx::query";

/// Exports each query of a request or job as a span of its trace: sqlx reports a query when it has ended, by an event.
/// Queries of background loops belong to no trace.
struct QuerySpans(SdkTracer);

impl<S: tracing::Subscriber> Layer<S> for QuerySpans {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let parent = Span::current().context();
        if !parent.span().span_context().is_valid() {
            return;
        }
        let mut query = Query::default();
        event.record(&mut query);
        // The statement contains no values: they are parameters. A short statement is its own summary.
        let statement = Some(query.statement).filter(|text| !text.is_empty());
        let statement = statement.unwrap_or_else(|| query.summary.clone());
        let started = SystemTime::now().checked_sub(Duration::from_secs_f64(query.elapsed_secs));
        let span = SpanBuilder::from_name(query.summary)
            .with_kind(SpanKind::Client)
            .with_start_time(started.unwrap_or(SystemTime::UNIX_EPOCH))
            .with_attributes([
                KeyValue::new("db.system.name", "postgresql"),
                KeyValue::new("db.statement", statement.trim().to_owned()),
            ]);
        self.0.build_with_context(span, &parent).end();
    }
}

/// The fields of sqlx's event.
#[derive(Default)]
struct Query {
    summary: String,
    statement: String,
    elapsed_secs: f64,
}

impl Visit for Query {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => value.clone_into(&mut self.summary),
            "db.statement" => value.clone_into(&mut self.statement),
            _ => {}
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "elapsed_secs" {
            self.elapsed_secs = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

/// Returns the `traceparent` of the current trace; `None` if tracing is off.
pub fn current_trace() -> Option<String> {
    let mut carrier = std::collections::HashMap::new();
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut carrier);
    carrier.remove(TRACEPARENT)
}

/// Makes `span`, which must not have been entered yet, continue the trace `traceparent` from [`current_trace`]. An
/// invalid `traceparent` starts a new trace.
pub fn continue_trace(span: &Span, traceparent: Option<&str>) {
    let Some(traceparent) = traceparent else { return };
    let carrier =
        std::collections::HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    // Fails if tracing is off or the span has been entered. The span then starts its own trace.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
}

/// The HTTP client for the collector. The exporter sends from its own thread, so requests are spawned on `runtime`.
#[derive(Debug)]
struct Collector {
    http: reqwest::Client,
    runtime: tokio::runtime::Handle,
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let http = self.http.clone();
        let request = reqwest::Request::try_from(request)?;
        let sent = self.runtime.spawn(async move {
            let answer = http.execute(request).await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        });
        let (status, body) = sent.await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}
