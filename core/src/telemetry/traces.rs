//! Traces over OTLP. One trace covers a run from the request to the commit, across both processes.
//!
//! The API stores the trace of a request in the job's row (as a W3C `traceparent`), and the worker continues it.

use std::time::Duration;

use anyhow::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing::level_filters::LevelFilter;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

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

/// Returns a layer that exports only our own spans.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let ours = Targets::new()
        .with_target("retouch_core", LevelFilter::INFO)
        .with_target("retouch_api", LevelFilter::INFO)
        .with_target("retouch_worker", LevelFilter::INFO);
    tracing_opentelemetry::layer().with_tracer(provider.tracer("retouch")).with_filter(ours)
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
