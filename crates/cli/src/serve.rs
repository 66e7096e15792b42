//! `dateline serve`, `dateline stdio` and `dateline demo`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use dateline::{Bound, CancellationToken, Http, HttpOptions, Limits, Revisions};
use futures_util::future::{BoxFuture, join_all, try_join_all};
use gateway::{Gateway, Options, ServerOptions, Target};
use proto::Service;
use transport::client::{Guard, Settings};

use crate::admin;
use crate::args::{Configured, Demo, EraArg, Listen, Serve, StdioArgs};
use crate::changes::Changes;
use crate::config::{self, Config};
use crate::exit::Failure;
use crate::keys::Keyring;
use crate::readers;
use crate::socket::Socket;
use crate::terminal::say;
use crate::token::Token;
use crate::words;

/// `dateline serve`.
pub(crate) async fn serve(args: Serve) -> Result<(), Failure> {
    let config = config::load(&args.configured)?;
    let shutdown = on_signal()?;
    let keys = Keyring::open(args.keys.key_file, &shutdown)?;
    let token = Token::open(args.admin_token_file, &shutdown)?;
    if args.admin_http && token.is_none() {
        for_this_machine_alone(&args.listen)?;
    }
    let gateway = gateway(&args.configured, config.as_ref(), true, keys)?;
    let what = match &config {
        None => "a demo, since nothing is configured,".to_owned(),
        // Those that cannot be used have just been named.
        Some(config) => count(config.usable()),
    };
    follow(&args.configured, config, &gateway, &shutdown);
    let served = async {
        let revisions = Revisions::ALL;
        let admin = admin::open(&args.admin).await;
        let listening = Listening::new(gateway.clone(), revisions, &args.listen, &shutdown, &what).await?;
        let admin = admin::serve(admin, gateway.clone(), shutdown.clone());
        let router = args.admin_http.then(|| admin::over_http(gateway.clone(), token));
        tokio::join!(listening.serve(router), admin).0
    };
    let served = served.await;
    gateway.close().await;
    served
}

/// `dateline stdio`.
pub(crate) async fn stdio(args: StdioArgs) -> Result<(), Failure> {
    let config = config::load(&args.configured)?;
    let shutdown = on_signal()?;
    let gateway = gateway(&args.configured, config.as_ref(), false, Keyring::process()?)?;
    follow(&args.configured, config, &gateway, &shutdown);
    let served = dateline::stdio_until(gateway.clone(), Revisions::ALL, Limits::default(), shutdown).await;
    gateway.close().await;
    served.map_err(|e| Failure::Other(format!("standard input or output failed: {e}")))
}

fn count(servers: usize) -> String {
    match servers {
        1 => "1 server".to_owned(),
        many => format!("{many} servers"),
    }
}

/// A gateway over the configured servers, or the demo until some are. `long` says that it runs for itself, and so
/// remembers names.
fn gateway(
    configured: &Configured,
    config: Option<&Config>,
    long: bool,
    keys: Keyring,
) -> Result<Gateway, Failure> {
    config.into_iter().for_each(complain);
    let options = match config {
        Some(config) => config.options.clone(),
        None => {
            let demo = demo::server(None, |demo| demo.keys(keys.clone()))
                .map_err(|e| Failure::Other(e.to_string()))?;
            let demo = ServerOptions::new("demo", Target::Local(Arc::new(demo)));
            let source = config::place(configured).map(|(path, _)| config::absolute(&path));
            Options { servers: vec![demo], source, ..Options::default() }
        }
    };
    let mut settings = Settings::new("dateline", env!("CARGO_PKG_VERSION"));
    settings.guard = std::env::current_exe().ok().and_then(|me| Guard::start(&me, &["guard"]).ok());
    if settings.guard.is_none() {
        tracing::warn!(
            "no guard could be started: if dateline is killed, servers that ignore the end of their input stay"
        );
    }
    let names = if long { config::state("names.json") } else { None };
    Ok(Gateway::start(options, settings, names, keys))
}

fn complain(config: &Config) {
    let readers = readers::of_configuration(&config.path);
    for what in config.complaints().iter().chain(&readers) {
        say(&format!("dateline: warning: {}", words::line(what)));
    }
}

/// Serves the configuration as it changes: on SIGHUP, and when its file was written, appears or goes. An edit that is
/// wrong as a whole changes nothing and is reported; nor does a file that goes.
fn follow(configured: &Configured, config: Option<Config>, gateway: &Gateway, shutdown: &CancellationToken) {
    let Some((path, _)) = config::place(configured) else { return };
    let (gateway, shutdown) = (gateway.clone(), shutdown.clone());
    tokio::spawn(async move {
        let Some(mut changes) = Changes::of(&path, "the configuration") else { return };
        let mut last = config;
        let mut there = last.is_some();
        // Looked at once in any case: it may have changed before it was watched.
        loop {
            take(&path, &gateway, &mut last, &mut there);
            if !changes.next(&shutdown).await {
                return;
            }
        }
    });
}

/// Reads a configuration, and serves it where it is another one than the last.
fn take(path: &Path, gateway: &Gateway, last: &mut Option<Config>, there: &mut bool) {
    let was_there = std::mem::replace(there, path.exists());
    if !*there {
        if was_there {
            say(&format!("dateline: {} is gone; what it said last is still served", path.display()));
        }
        return;
    }
    let config = match config::from(path) {
        Ok(config) if last.as_ref() == Some(&config) => return,
        Ok(config) => config,
        Err(why) => {
            say(&format!("dateline: the changed configuration is not used: {}", words::line(&why)));
            return;
        }
    };
    complain(&config);
    let applied = gateway.apply(config.options.clone());
    *last = Some(config);
    if applied.started.is_empty() && applied.stopped.is_empty() {
        return;
    }
    let names = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    say(&format!(
        "dateline: {} was read: started {}, stopped {}, {} untouched",
        path.display(),
        words::line(&names(&applied.started)),
        words::line(&names(&applied.stopped)),
        applied.kept
    ));
}

/// `dateline demo`.
pub(crate) async fn demo(args: Demo) -> Result<(), Failure> {
    let shutdown = on_signal()?;
    let keys = Keyring::open(args.keys.key_file, &shutdown)?;
    let skills = match args.skills {
        None => demo::skills().map_err(|e| Failure::Other(e.to_string()))?,
        Some(folder) => dateline::Skills::from_folder(folder).map_err(|e| Failure::Usage(e.to_string()))?,
    };
    let server = demo::server(Some(skills), |demo| {
        let demo = demo.keys(keys);
        match args.page_size {
            Some(entries) => demo.page_size(entries.get()),
            None => demo,
        }
    });
    let server = server.map_err(|e| Failure::Other(e.to_string()))?;
    let revisions = match args.era {
        None => Revisions::ALL,
        Some(EraArg::Legacy) => Revisions::LEGACY,
        Some(EraArg::Modern) => Revisions::MODERN,
    };
    let limits = limits(&args.listen);
    if args.stdio {
        let served = dateline::stdio_until(server, revisions, limits, shutdown).await;
        return served.map_err(|e| Failure::Other(format!("standard input or output failed: {e}")));
    }
    Listening::new(server, revisions, &args.listen, &shutdown, "the demo").await?.serve(None).await
}

fn limits(listen: &Listen) -> Limits {
    Limits { message: listen.max_message, ..Limits::default() }
}

/// Where to listen, and how.
enum Place<'a> {
    Http(&'a str),
    Unix(&'a Path),
    Tcp(&'a str),
}

impl Place<'_> {
    fn read(listen: &str) -> Place<'_> {
        match listen.split_once(':') {
            Some(("unix", path)) => Place::Unix(Path::new(path)),
            Some(("tcp", address)) => Place::Tcp(address),
            _ => Place::Http(listen),
        }
    }
}

/// Says whether an address can be reached from this machine only.
fn is_loopback(address: &str) -> bool {
    let parsed: Option<SocketAddr> = address.parse().ok();
    parsed.map_or(address.starts_with("localhost:"), |a| a.ip().is_loopback())
}

/// Whether it may be listened on an address.
fn allowed(address: &str, listen: &Listen) -> Result<(), Failure> {
    if is_loopback(address) || listen.allow_remote {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{address} can be reached from other machines, and nobody has to log in. Listen on 127.0.0.1, or add \
         --allow-remote if that is what you want"
    )))
}

/// Whether the admin API may be served to whoever reaches the addresses.
fn for_this_machine_alone(listen: &Listen) -> Result<(), Failure> {
    let http = listen.listen.iter().filter_map(|place| match Place::read(place) {
        Place::Http(address) => Some(address),
        Place::Unix(_) | Place::Tcp(_) => None,
    });
    let Some(address) = http.into_iter().find(|address| !is_loopback(address)) else { return Ok(()) };
    allowed(address, listen)?;
    Err(Failure::Usage(format!(
        "other machines would reach the admin API at {address}, and nobody has to log in. Make a token by `dateline key > \
         FILE && chmod 600 FILE` and add --admin-token-file FILE; or leave out --admin-http: `dateline status` on this \
         machine does without"
    )))
}

/// Endpoints that listen where they were asked to.
struct Listening {
    http: Vec<Bound>,
    lines: Vec<BoxFuture<'static, ()>>,
}

impl Listening {
    /// Listens, and says on stderr where.
    async fn new(
        service: impl Service + Clone,
        revisions: Revisions,
        listen: &Listen,
        shutdown: &CancellationToken,
        what: &str,
    ) -> Result<Listening, Failure> {
        let mut listening = Listening { http: Vec::new(), lines: Vec::new() };
        let failed = |why: String| {
            Failure::Listen(format!(
                "{why}. Is another dateline running? Choose another address with --listen"
            ))
        };
        let limits = limits(listen);
        for place in &listen.listen {
            let (service, token) = (service.clone(), shutdown.clone());
            match Place::read(place) {
                Place::Http(address) => {
                    allowed(address, listen)?;
                    let options = HttpOptions {
                        hosts: Some(listen.allow_hosts.clone()),
                        origins: listen.allow_origins.clone(),
                        ..listen.crowd.options()
                    };
                    let http = Http::new(service).revisions(revisions).limits(limits);
                    let bound = http.options(options).until(token).bind(address).await;
                    let bound = bound.map_err(|e| failed(e.to_string()))?;
                    say(&format!("dateline serves {what} at {}", bound.url()));
                    listening.http.push(bound);
                }
                Place::Tcp(address) => {
                    allowed(address, listen)?;
                    let cannot = |e| failed(format!("cannot listen on {address}: {e}"));
                    let listener = tokio::net::TcpListener::bind(address).await.map_err(cannot)?;
                    let at = listener.local_addr().map_err(cannot)?;
                    say(&format!("dateline serves {what} at tcp:{at}"));
                    listening
                        .lines
                        .push(Box::pin(dateline::tcp(listener, service, revisions, limits, token)));
                }
                Place::Unix(path) => {
                    let cannot = |why: String| failed(format!("cannot listen on {}: {why}", path.display()));
                    let socket = Socket::open(path).await.map_err(|e| cannot(e.to_string()))?;
                    let Socket { listener, file } =
                        socket.ok_or_else(|| cannot("another process listens there".into()))?;
                    say(&format!("dateline serves {what} at unix:{}", path.display()));
                    listening.lines.push(Box::pin(async move {
                        dateline::unix(listener, service, revisions, limits, token).await;
                        drop(file);
                    }));
                }
            }
        }
        Ok(listening)
    }

    /// Serves, with another router beside each HTTP endpoint, behind the same checks.
    async fn serve(self, beside: Option<axum::Router>) -> Result<(), Failure> {
        let http = self.http.into_iter().map(|bound| bound.serve_beside(beside.clone().unwrap_or_default()));
        let (served, _) = tokio::join!(try_join_all(http), join_all(self.lines));
        served.map(drop).map_err(|e| Failure::Other(format!("the listener failed: {e}")))
    }
}

/// Cancelled by the first SIGINT or SIGTERM; the second one ends the process at once.
pub(crate) fn on_signal() -> Result<CancellationToken, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |e| Failure::Other(format!("signals cannot be caught: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let token = CancellationToken::new();
    let shutdown = token.clone();
    tokio::spawn(async move {
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if last {
                std::process::exit(1);
            }
            shutdown.cancel();
        }
    });
    Ok(token)
}
