//! The server of the benchmark by rmcp, as its authors show it: `echo`, `steps` that reports progress first, `change` that
//! tells that the list of tools changed, and as many further tools as asked for.

use std::error::Error;
use std::sync::Arc;

use axum::serve::ListenerExt;
use clap::Parser;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    Implementation, ProgressNotificationParam, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::sync::broadcast;

#[derive(Parser)]
struct Options {
    /// Where to serve HTTP; standard input and output where it is not given.
    #[arg(long)]
    listen: Option<String>,
    /// How many tools the list has.
    #[arg(long, default_value_t = 3)]
    tools: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    /// What comes back.
    text: String,
}

#[derive(Clone)]
struct Echo {
    tool_router: Arc<ToolRouter<Echo>>,
    /// Tells the subscriptions that the list changed.
    changed: broadcast::Sender<()>,
}

#[tool_router]
impl Echo {
    #[tool(description = "Gives the text back")]
    async fn echo(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        text
    }

    #[tool(description = "Reports progress and gives the text back")]
    async fn steps(
        &self,
        Parameters(Text { text }): Parameters<Text>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
            let sent = context.peer.notify_progress(progress).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok(text)
    }

    #[tool(description = "Tells that the list of tools changed")]
    async fn change(&self, Parameters(Text { text }): Parameters<Text>) -> String {
        // It fails where nobody listens.
        let _ = self.changed.send(());
        text
    }
}

impl Echo {
    fn new(tools: usize) -> Echo {
        let mut router = Echo::tool_router();
        let echo = router.map["echo"].clone();
        for number in 3..tools {
            let mut route = echo.clone();
            route.attr.name = format!("echo_{number}").into();
            router.add_route(route);
        }
        Echo { tool_router: Arc::new(router), changed: broadcast::channel(16).0 }
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("echo", "1.0.0"))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changed.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => match change {
                    Ok(()) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        let sent = context.sink().notify_tool_list_changed().await;
                        sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                    }
                    Err(broadcast::error::RecvError::Closed) => return Ok(()),
                },
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let echo = Echo::new(options.tools);
    let Some(address) = options.listen else {
        echo.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    };
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(
        move || Ok(echo.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving http://{}/mcp", listener.local_addr()?);
    // Without it each event would wait for the client's acknowledgement of the one before, 40 ms.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("a connection without TCP_NODELAY: {error}");
        }
    });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
