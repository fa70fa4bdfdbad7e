//! Answers the requests of clients.

use std::pin::pin;

use axum::http::request::Parts;
use retouch_catalog::Tool;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as McpTool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tracing::Instrument;

use super::arguments::{Account, MagicFix, RemoveBackground, Upscale};
use super::caller::ToolCaller;
use super::pictures::{area, picture};
use super::progress::report;
use super::reply::{of_account, of_error, of_run};
use super::tools::Name;
use crate::error::ApiError;
use crate::http::body::UploadMemory;
use crate::state::App;
use crate::usecases::mcp::{Action, Call, call_tool};

const INSTRUCTIONS: &str = "\
Retouch edits pictures. Name a picture by the id of an upload or of an earlier result, or send a small one as base64. \
Larger ones are uploaded with POST /api/images/upload. Every run costs credits of the account; the tools say how many.";

/// Serves one request.
#[derive(Clone)]
pub struct Server {
    app: App,
}

impl Server {
    pub const fn new(app: App) -> Self {
        Self { app }
    }

    async fn call(
        &self,
        name: Name,
        arguments: Value,
        context: &RequestContext<RoleServer>,
        parts: &Parts,
        caller: &ToolCaller,
    ) -> Result<CallToolResult, ApiError> {
        let app = &self.app;
        let (sender, started) = watch::channel(None);
        let call = |image, action, idempotency_key| {
            let picture = picture(app, image)?;
            Ok::<_, ApiError>(Call { picture, action, idempotency_key, started: sender.clone() })
        };
        let call = match name {
            Name::Account => {
                let Account {} = parse(arguments)?;
                return of_account(app, &caller.user).await;
            }
            Name::RemoveBackground => {
                let RemoveBackground { image, idempotency_key } = parse(arguments)?;
                call(image, Action::Run(Tool::RemoveBackground), idempotency_key)?
            }
            Name::Upscale => {
                let Upscale { image, factor, idempotency_key } = parse(arguments)?;
                call(image, Action::Run(Tool::Upscale(factor)), idempotency_key)?
            }
            Name::MagicFix => {
                let fix: MagicFix = parse(arguments)?;
                let action = Action::Fix {
                    prompt: fix.prompt,
                    area: area(fix.area)?,
                    is_mask_exact: fix.exact_mask,
                };
                call(fix.image, action, fix.idempotency_key)?
            }
        };
        let id = serde_json::to_value(&context.id).map_err(anyhow::Error::from)?;
        let token = context.meta.get_progress_token();
        let mut submitted = started.clone();
        let run = async {
            let mut run = pin!(call_tool(app, &caller.user, call));
            tokio::select! {
                biased;
                outcome = &mut run => return outcome,
                _ = submitted.wait_for(Option::is_some) => {}
            }
            // The call's picture is stored, and the run may take minutes: free the body's memory.
            UploadMemory::of(&parts.extensions).release();
            run.await
        };
        let outcome = tokio::select! {
            outcome = run => outcome?,
            () = report(app, &context.peer, token, started.clone()) => return Err(ApiError::Canceled),
            // The client has gone; it may come back within moments.
            () = context.ct.cancelled() => return Err(ApiError::Canceled),
            // Its run is canceled unless another call waits for it.
            () = caller.canceled(app, &id) => return Err(ApiError::Canceled),
        };
        of_run(app, caller.user.id, outcome).await
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info =
            Implementation::new("retouch", env!("CARGO_PKG_VERSION")).with_title("Retouch");
        info.with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(Name::ALL.map(Name::describe).into()))
    }

    fn get_tool(&self, name: &str) -> Option<McpTool> {
        Name::parse(name).map(Name::describe)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(name) = Name::parse(&request.name) else {
            let detail = format!("There is no tool named {}.", request.name);
            return Err(ErrorData::invalid_params(detail, None));
        };
        let parts = context.extensions.get::<Parts>();
        let Some((parts, caller)) =
            parts.and_then(|it| Some((it, it.extensions.get::<ToolCaller>()?)))
        else {
            return Err(ErrorData::internal_error("The request has no caller.", None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let call = self.call(name, arguments, &context, parts, caller);
        let answer = call.instrument(caller.span.clone()).await;
        Ok(answer.unwrap_or_else(|error| of_error(&error)).into())
    }
}

/// Parses the arguments of a call. The error says which one is wrong, so that a model can do better.
fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let (path, reason) = (error.path().to_string(), error.inner().to_string());
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        ApiError::BadRequest(format!("The arguments are invalid: {place}{reason}."))
    })
}
