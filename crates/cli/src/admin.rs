//! The admin API under /v1, and the commands that use it: `dateline status`, `dateline logs` and `dateline restart`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gateway::{Entry, Gateway, LeftOut, Report};
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use transport::CancellationToken;

use crate::args::{Admin, Logs, Restart, Status};
use crate::config;
use crate::exit::{self, Failure};
use crate::socket::Socket;
use crate::terminal::print;
use crate::token::{self, Token};
use crate::words;

/// How often a socket is looked at that another dateline has.
const AGAIN: Duration = Duration::from_secs(1);

/// How long who has a server started again waits to hear how it is.
const STARTED: Duration = Duration::from_secs(15);

/// Where the socket is, where nothing else is said.
fn default_socket() -> Option<PathBuf> {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| Path::new(folder).is_absolute()) {
        Some(folder) => Some(PathBuf::from(folder).join("dateline/admin.sock")),
        None => config::state("admin.sock"),
    }
}

/// The admin API.
pub(crate) fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/logs", get(logs))
        .route("/v1/restart", post(restarted))
        .with_state(gateway)
}

/// The same over HTTP: for whoever reaches it, or for who has a token.
pub(crate) fn over_http(gateway: Gateway, token: Option<Arc<Token>>) -> Router {
    match token {
        None => router(gateway),
        Some(token) => router(gateway).layer(from_fn_with_state(token, token::ask)),
    }
}

/// The first attempt to open the admin socket.
pub(crate) struct First {
    path: PathBuf,
    opened: std::io::Result<Option<Socket>>,
}

/// Opens the admin socket, before it is said that dateline serves: whoever hears that may ask how it is. `None` where
/// there is no place for one.
pub(crate) async fn open(admin: &Admin) -> Option<First> {
    let path = admin.admin_socket.clone().or_else(default_socket)?;
    let opened = Socket::open(&path).await;
    Some(First { path, opened })
}

/// Serves the admin socket until it is told to stop. Another dateline that has it keeps it while it runs.
pub(crate) async fn serve(first: Option<First>, gateway: Gateway, shutdown: CancellationToken) {
    let Some(First { path, mut opened }) = first else { return };
    let mut told = false;
    loop {
        match opened {
            Ok(Some(Socket { listener, file })) => {
                transport::http::serve_unix(listener, router(gateway), shutdown).await;
                drop(file);
                return;
            }
            Ok(None) if !told => {
                tracing::warn!(socket = %path.display(), "another dateline has the admin socket, and shows its own status");
                told = true;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(socket = %path.display(), %error, "the admin socket cannot be opened; all else works");
                return;
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
        opened = Socket::open(&path).await;
    }
}

async fn status(State(gateway): State<Gateway>) -> Response<Body> {
    let servers: Vec<Value> = gateway.status().iter().map(report).collect();
    let body = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "config": gateway.source(),
        "servers": servers,
    });
    response("application/json", Body::from(body.to_string()))
}

fn report(report: &Report) -> Value {
    json!({
        "name": report.name,
        "state": report.state.word(),
        "why": report.why,
        "since": timestamp(report.since),
        "transport": report.transport,
        "revision": report.revision.map(spec::Revision::as_str),
        "era": report.revision.map(|revision| format!("{:?}", revision.era()).to_lowercase()),
        "pids": report.pids,
        "tools": report.tools,
        "calls": report.calls,
        "errors": report.errors,
        "restarts": report.restarts,
        "stale": report.stale.iter().map(|(list, why)| json!({"list": list.wire(), "why": why})).collect::<Vec<_>>(),
        "left_out": report.left_out.iter().map(left_out).collect::<Vec<_>>(),
        "left_out_count": report.left_out_count,
    })
}

fn left_out(left_out: &LeftOut) -> Value {
    json!({"list": left_out.list.wire(), "name": left_out.name, "why": left_out.why})
}

#[derive(Deserialize)]
struct Restarting {
    server: String,
}

/// Starts a server again, and says how it is once that is known, or after a while.
async fn restarted(State(gateway): State<Gateway>, Query(wanted): Query<Restarting>) -> Response<Body> {
    let Some(started) = gateway.restart(&wanted.server, STARTED).await else {
        let names: Vec<String> = gateway.status().into_iter().map(|report| report.name).collect();
        let body = json!({"error": no_server(&wanted.server, &names), "servers": names});
        let mut response = response("application/json", Body::from(body.to_string()));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    response("application/json", Body::from(report(&started).to_string()))
}

fn no_server(name: &str, servers: &[String]) -> String {
    let known: Vec<&str> = servers.iter().map(String::as_str).collect();
    let near = known.iter().min_by_key(|known| strsim::levenshtein(known, name));
    match near.filter(|near| strsim::levenshtein(near, name) < 4) {
        Some(near) => format!("there is no server {name:?}; did you mean {near:?}?"),
        None if known.is_empty() => format!("there is no server {name:?}: none are configured"),
        None => format!("there is no server {name:?}; there are {}", known.join(", ")),
    }
}

#[derive(Deserialize)]
struct Wanted {
    server: Option<String>,
    #[serde(default)]
    follow: bool,
}

async fn logs(State(gateway): State<Gateway>, Query(wanted): Query<Wanted>) -> Response<Body> {
    let (kept, follow) = gateway.logs(wanted.server.as_deref());
    if let Some(server) = wanted.server.as_deref().filter(|_| kept.is_empty()) {
        let names: Vec<String> = gateway.status().into_iter().map(|report| report.name).collect();
        if !names.iter().any(|name| name == server) {
            let mut unknown = response("application/json", Body::from(json!({"servers": names}).to_string()));
            *unknown.status_mut() = StatusCode::NOT_FOUND;
            return unknown;
        }
    }
    let kept = stream::iter(kept);
    let lines = if wanted.follow {
        let server = wanted.server;
        let following = stream::unfold(follow, |mut follow| async move {
            loop {
                match follow.recv().await {
                    Ok(entry) => return Some((entry, follow)),
                    // Who reads too slowly misses lines.
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return None,
                }
            }
        });
        let following = following.filter(move |entry| {
            std::future::ready(server.as_ref().is_none_or(|server| entry.server == *server))
        });
        kept.chain(following).boxed()
    } else {
        kept.boxed()
    };
    let lines = lines.map(|entry| Ok::<_, std::convert::Infallible>(Bytes::from(line(&entry))));
    response("application/x-ndjson", Body::from_stream(lines))
}

fn line(entry: &Entry) -> String {
    json!({"at": timestamp(entry.at), "server": entry.server, "text": entry.text}).to_string() + "\n"
}

fn response(kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static(kind));
    response
}

fn timestamp(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default()
}

/// Asks the dateline that runs.
async fn ask(
    admin: &Admin,
    uri: &str,
) -> Result<(StatusCode, impl stream::Stream<Item = Result<Bytes, String>> + Unpin + use<>), Failure> {
    send(admin, Method::GET, uri).await
}

async fn send(
    admin: &Admin,
    method: Method,
    uri: &str,
) -> Result<(StatusCode, impl stream::Stream<Item = Result<Bytes, String>> + Unpin + use<>), Failure> {
    let socket = admin.admin_socket.clone().or_else(default_socket);
    let socket = socket.ok_or_else(|| Failure::Usage("name the socket with --admin-socket".into()))?;
    transport::unix::ask(&socket, method, uri).await.map_err(|why| {
        Failure::Reach(format!("no dateline is running ({why}); start one with `dateline serve`"))
    })
}

/// The whole of an answer, as JSON.
async fn whole(
    mut body: impl stream::Stream<Item = Result<Bytes, String>> + Unpin,
) -> Result<Value, Failure> {
    let mut text = Vec::new();
    while let Some(chunk) = body.next().await {
        text.extend_from_slice(&chunk.map_err(Failure::Reach)?);
    }
    serde_json::from_slice(&text).map_err(|_| {
        Failure::Answer("what answers at the admin socket is no dateline: it sends no JSON".into())
    })
}

/// `dateline restart`.
pub(crate) async fn restart(args: Restart, as_json: bool) -> Result<(), Failure> {
    let uri = format!("/v1/restart?server={}", encoded(&args.server));
    let (status, body) = send(&args.admin, Method::POST, &uri).await?;
    let server = whole(body).await?;
    if status == StatusCode::NOT_FOUND {
        let why = server["error"].as_str().unwrap_or("it has no such server, or is an older one");
        return Err(Failure::Usage(why.to_owned()));
    }
    if !status.is_success() {
        return Err(Failure::Answer(format!("the running dateline answers {status}")));
    }
    let state = server["state"].as_str().unwrap_or_default();
    let why = server["why"].as_str().unwrap_or_default();
    if as_json {
        print(&words::json(&server))?;
    } else if state != "down" {
        print(&format!("{} was started again and is {state}\n", words::line(&args.server)))?;
    }
    match state {
        "down" => Err(Failure::Reach(format!(
            "{} was started again and is down: {why}; it is tried again by itself",
            args.server
        ))),
        _ => Ok(()),
    }
}

/// How the running dateline is, as its admin API says.
pub(crate) async fn running(admin: &Admin) -> Result<Value, Failure> {
    let (status, body) = ask(admin, "/v1/status").await?;
    if !status.is_success() {
        return Err(Failure::Answer(format!("the running dateline answers {status}")));
    }
    whole(body).await
}

/// `dateline status`.
pub(crate) async fn show_status(args: Status, as_json: bool) -> Result<(), Failure> {
    let status = running(&args.admin).await?;
    print(&if as_json { words::json(&status) } else { table(&status) })
}

/// The status for people: a line a server, and below it what is wrong with it.
fn table(status: &Value) -> String {
    let servers = status["servers"].as_array().cloned().unwrap_or_default();
    if servers.is_empty() {
        return "no servers are configured\n".to_owned();
    }
    let text = |server: &Value, key: &str| match &server[key] {
        Value::String(text) => words::line(text),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let pids = |server: &Value| {
        let pids: Vec<_> = server["pids"].as_array().into_iter().flatten().map(Value::to_string).collect();
        if pids.is_empty() { "-".to_owned() } else { pids.join(",") }
    };
    let columns =
        ["server", "state", "revision", "transport", "pid", "tools", "calls", "errors", "restarts", "since"];
    let row = |server: &Value| -> Vec<String> {
        let cell = |column: &&str| match *column {
            "server" => text(server, "name"),
            "pid" => pids(server),
            other => text(server, other),
        };
        columns.iter().map(cell).collect()
    };
    let rows: Vec<Vec<String>> = servers.iter().map(row).collect();
    let width = |at: usize| {
        rows.iter().map(|row| row[at].chars().count()).chain([columns[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let format = |cells: &[String]| {
        let padded: Vec<_> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut shown = format(&columns.map(str::to_owned));
    for (server, row) in servers.iter().zip(&rows) {
        shown += &format(row);
        if let Some(why) = server["why"].as_str() {
            shown += &format!("  {}\n", words::line(why));
        }
        for stale in server["stale"].as_array().into_iter().flatten() {
            shown += &format!(
                "  {} is not as the server has it now, and is read again: {}\n",
                text(stale, "list"),
                text(stale, "why")
            );
        }
        let left_out = server["left_out"].as_array().map(Vec::as_slice).unwrap_or_default();
        for entry in left_out {
            shown +=
                &format!("  {}: {:?}: {}\n", text(entry, "list"), text(entry, "name"), text(entry, "why"));
        }
        let more =
            server["left_out_count"].as_u64().unwrap_or_default().saturating_sub(left_out.len() as u64);
        if more > 0 {
            shown += &format!("  and {more} more; `dateline logs {}` has them\n", text(server, "name"));
        }
    }
    shown
}

/// `dateline logs`.
pub(crate) async fn show_logs(args: Logs, as_json: bool) -> Result<(), Failure> {
    let server = args.server.as_deref().map(|name| format!("&server={}", encoded(name))).unwrap_or_default();
    let (status, mut body) = ask(&args.admin, &format!("/v1/logs?follow={}{server}", args.follow)).await?;
    match (status, &args.server) {
        (StatusCode::NOT_FOUND, Some(server)) => {
            let known = whole(body).await?;
            let names: Vec<&str> =
                known["servers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let meant = exit::meant(server, names.iter().copied());
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Failure::Usage(format!(
                "the running dateline has no server {server:?}{meant}; it has: {names}"
            )));
        }
        (status, _) if !status.is_success() => {
            return Err(Failure::Answer(format!("the running dateline answers {status}")));
        }
        _ => {}
    }
    let mut buffer = Vec::new();
    while let Some(chunk) = body.next().await {
        buffer.extend_from_slice(&chunk.map_err(Failure::Reach)?);
        while let Some(end) = buffer.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let shown = match serde_json::from_slice::<Value>(&line) {
                Ok(entry) if !as_json => {
                    let text = |key: &str| words::line(entry[key].as_str().unwrap_or_default());
                    format!("{} {} {}\n", text("at"), text("server"), text("text"))
                }
                _ => words::json_text(&String::from_utf8_lossy(&line)),
            };
            print(&shown)?;
        }
    }
    Ok(())
}

fn encoded(name: &str) -> String {
    name.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-_.".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// How often a file is looked at where the system does not tell of changes, and how long a change settles.
pub(crate) const SETTLES: Duration = Duration::from_millis(200);
