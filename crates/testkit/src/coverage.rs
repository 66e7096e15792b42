//! Notes on what a test covered: the revision that its client spoke, the transport, and whether a gateway was between
//! client and server. The program `conformance` makes the matrix of these notes.
//!
//! A test is known by the name that [`macro@crate::test`] gives it. Notes go to `target/conformance`, a file for each process; whoever reads them has to know that the tests
//! passed.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;
use tokio::process::Command;

use crate::arrival::{Arrival, Exchange, LEGACY, MODERN, Wire};

/// The key of `_meta` that every modern request has.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of `_meta` that names the `subscriptions/listen` request of a notification.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What is between the client of a test and the server that it tests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Between {
    /// Nothing.
    Nothing,
    /// `dateline serve` or `dateline stdio`.
    Gateway,
}

/// One note: a test, and what it covered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Note {
    /// The folder of the test's crate.
    pub package: String,
    /// The test's function.
    pub test: String,
    /// The revision.
    pub revision: String,
    /// The transport: `stdio`, `http` or `sse`.
    pub wire: String,
    /// What was between client and server.
    pub between: Between,
    /// The test says so by [`covers`]; no client showed it.
    pub said: bool,
}

impl Note {
    /// Writes the note as a line.
    pub fn line(&self) -> String {
        let between = if self.between == Between::Gateway { "gateway" } else { "nothing" };
        let how = if self.said { "said" } else { "seen" };
        [&self.package, &self.test, &self.revision, &self.wire, between, how].join("\t")
    }

    /// Reads a line.
    pub fn read(line: &str) -> Option<Note> {
        let [package, test, revision, wire, between, how] = line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let between = match between {
            "gateway" => Between::Gateway,
            "nothing" => Between::Nothing,
            _ => return None,
        };
        let own = str::to_owned;
        let said = how == "said";
        Some(Note {
            package: own(package),
            test: own(test),
            revision: own(revision),
            wire: own(wire),
            between,
            said,
        })
    }
}

/// Notes what a test covers where no [`crate::Client`] can show it.
///
/// Tests use it that write bytes themselves, or that test what happens before a revision is agreed on. The matrix marks
/// such a note as said.
pub fn covers(revisions: &[&'static str], wire: Wire, between: Between) {
    for revision in revisions {
        note(revision, wire, between, true);
    }
}

/// Returns the folder of the notes, for a program that is `depth` folders below its parent.
pub(crate) fn folder(depth: usize) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().nth(depth).map(|target| target.join("conformance"))
}

thread_local! {
    /// The name of the test that runs on this thread.
    static TEST: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Runs a test on a runtime of one thread, and lets the notes that are made meanwhile carry its name.
///
/// [`macro@crate::test`] calls it. Whatever the test spawns runs on this thread too.
///
/// # Panics
/// Where the runtime cannot be built, or the test fails.
pub fn run<T>(test: &'static str, body: impl Future<Output = T>) -> T {
    /// Forgets the name, also where the test panics: the next test may run on the same thread.
    struct Named;
    impl Drop for Named {
        fn drop(&mut self) {
            TEST.set(None);
        }
    }
    TEST.set(Some(test));
    let _named = Named;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime is built").block_on(Box::pin(body))
}

/// The name of the test that runs on this thread. Of a test that [`run`] does not run, libtest knows the name: it
/// gives it to the test's thread, unless there is one thread for all tests.
fn test_name() -> Option<String> {
    TEST.get().map(str::to_owned).or_else(|| {
        let thread = std::thread::current();
        let path = thread.name().filter(|name| *name != "main")?;
        path.rsplit("::").next().map(str::to_owned)
    })
}

fn note(revision: &str, wire: Wire, between: Between, said: bool) {
    static NOTED: LazyLock<Mutex<BTreeSet<Note>>> = LazyLock::new(Mutex::default);
    let Some(test) = test_name() else { return };
    // Cargo sets it for the tests that it runs.
    let Some(package) = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else { return };
    let Some(package) = package.file_name().and_then(|name| name.to_str()) else { return };
    let note = Note {
        package: package.to_owned(),
        test,
        revision: revision.to_owned(),
        wire: format!("{wire:?}").to_lowercase(),
        between,
        said,
    };
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.insert(note.clone()) {
        append(&note).expect("notes on coverage can be written");
    }
}

fn append(note: &Note) -> std::io::Result<()> {
    // target/debug/deps/main-0123
    let folder = folder(3).ok_or_else(|| std::io::Error::other("the test is in no folder"))?;
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(std::process::id().to_string());
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{}\n", note.line()).as_bytes())
}

/// Returns what is between the tests and the server that a command starts.
pub(crate) fn between(command: &Command) -> Between {
    let command = command.as_std();
    let is_ours = Path::new(command.get_program()).file_stem().is_some_and(|name| name == "dateline");
    let serves = command.get_args().any(|arg| arg == "serve" || arg == "stdio");
    if is_ours && serves { Between::Gateway } else { Between::Nothing }
}

/// What each port belongs to.
static PORTS: LazyLock<Mutex<HashMap<String, Between>>> = LazyLock::new(Mutex::default);

fn port(url: &str) -> String {
    let authority = url.split('/').nth(2).unwrap_or_default();
    authority.rsplit(':').next().unwrap_or_default().to_owned()
}

/// The entry of a port. It is removed when this is dropped, since another program may get the port afterwards.
pub(crate) struct PortEntry(String);

impl Drop for PortEntry {
    fn drop(&mut self) {
        PORTS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Remembers what serves a URL.
pub(crate) fn remember_port(url: &str, between: Between) -> PortEntry {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner).insert(port(url), between);
    PortEntry(port(url))
}

/// Returns what is between a test and the server at a URL.
pub(crate) fn between_at(url: &str) -> Between {
    let ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    ports.get(&port(url)).copied().unwrap_or(Between::Nothing)
}

/// Notes an HTTP exchange that a test made without a client: all that it sent on a connection, and all that came back.
pub fn saw_http(url: &str, sent: &str, got: &str) {
    let Some((head, body)) = sent.split_once("\r\n\r\n") else { return };
    let headers: Vec<(&str, &str)> = head.lines().filter_map(|line| line.split_once(": ")).collect();
    let mut observer = Observer::new(Wire::Http, between_at(url));
    observer.sent(1, body.as_bytes(), &headers, None);
    let bodies = got.lines().filter_map(|line| serde_json::from_str(line).ok());
    for message in bodies.chain([Value::Null]) {
        observer.received(&Arrival::Message(1, message, String::new()), None);
    }
}

/// Watches what one client sends and receives.
pub struct Observer {
    wire: Wire,
    between: Between,
    asked: Vec<Asked>,
    /// The revision of the session on a pipe.
    opened: Option<&'static str>,
}

/// Requests that were sent and may be answered.
struct Asked {
    exchange: Exchange,
    ids: Vec<Value>,
    revision: &'static str,
}

impl Observer {
    /// Makes an observer of a client on a transport.
    pub fn new(wire: Wire, between: Between) -> Observer {
        Observer { wire, between, asked: Vec::new(), opened: None }
    }

    /// Tells the observer that the client sends something, in a session of a revision if there is one.
    pub fn sent(&mut self, exchange: Exchange, body: &[u8], headers: &[(&str, &str)], session: Option<&str>) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let messages = body.as_array().cloned().unwrap_or_else(|| vec![body]);
        let marked = messages.iter().any(|m| m["params"]["_meta"].get(VERSION).is_some());
        let named =
            || headers.iter().any(|(n, v)| n.eq_ignore_ascii_case("mcp-protocol-version") && *v == MODERN);
        let revision = match session.or(self.opened) {
            Some(session) => known(session),
            None if marked || named() => Some(MODERN),
            None => None,
        };
        if let Some(revision) = revision {
            let ids = messages.iter().filter_map(|m| m.get("id").cloned()).collect();
            self.asked.push(Asked { exchange, ids, revision });
        }
    }

    /// Tells the observer that the client received something.
    ///
    /// It shows a revision: that of the session which it opens, that of the request which it answers, or else that of
    /// the session in which it came.
    pub fn received(&mut self, arrival: &Arrival, session: Option<&str>) {
        if let Some(revision) = self.shown(arrival, session) {
            note(revision, self.wire, self.between, false);
        }
    }

    fn shown(&mut self, arrival: &Arrival, session: Option<&str>) -> Option<&'static str> {
        let (exchange, message) = match arrival {
            Arrival::Head(exchange, _) => (exchange, &Value::Null),
            Arrival::Message(exchange, message, _) => (exchange, message),
            _ => return None,
        };
        let opened = message["result"]["protocolVersion"].as_str().and_then(known);
        if self.wire == Wire::Stdio {
            self.opened = opened.or(self.opened);
        }
        // The answer may come on another stream than the request's own, and standard streams are one exchange.
        let listen = message["params"]["_meta"].get(SUBSCRIPTION);
        let id = if message.get("method").is_none() { message.get("id") } else { listen };
        let answered = |asked: &&Asked| id.is_some_and(|id| asked.ids.contains(id));
        let of_exchange = |asked: &&Asked| asked.exchange == *exchange && *exchange != 0;
        let asked = self.asked.iter().find(answered).or_else(|| self.asked.iter().find(of_exchange));
        opened.or(asked.map(|asked| asked.revision)).or(session.and_then(known).or(self.opened))
    }
}

/// Returns the revision of this name. Tests also use names that no revision has.
fn known(revision: &str) -> Option<&'static str> {
    LEGACY.into_iter().chain([MODERN]).find(|known| *known == revision)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(exchange: Exchange, message: Value) -> Arrival {
        Arrival::Message(exchange, message, String::new())
    }

    #[test]
    fn an_answer_shows_the_revision_and_nothing_else_does() {
        let mut pipe = Observer::new(Wire::Stdio, Between::Nothing);
        let modern = json!({"id": 1, "method": "tools/list", "params": {"_meta": {VERSION: "2031-01-01"}}});
        pipe.sent(0, modern.to_string().as_bytes(), &[], None);
        pipe.sent(0, br#"{"id": 2, "method": "tools/list"}"#, &[], None);
        pipe.sent(0, b"{", &[], None);
        assert_eq!(pipe.shown(&message(0, json!({"id": 1, "error": {}})), None), Some(MODERN));
        assert_eq!(pipe.shown(&message(0, json!({"id": 2, "error": {}})), None), None, "of no era");
        assert_eq!(pipe.shown(&message(0, json!({"id": null, "error": {}})), None), None);
        assert_eq!(pipe.shown(&message(0, json!({"id": 1, "method": "x"})), None), None, "a request");
        let event = json!({"method": "x", "params": {"_meta": {SUBSCRIPTION: 1}}});
        assert_eq!(pipe.shown(&message(0, event), None), Some(MODERN), "of a listen");
        assert_eq!(pipe.shown(&Arrival::End(0), Some(LEGACY[0])), None);
        let opened = message(0, json!({"id": 3, "result": {"protocolVersion": LEGACY[2]}}));
        assert_eq!(pipe.shown(&opened, None), Some(LEGACY[2]), "what was agreed on, not what was asked");
        assert_eq!(pipe.shown(&message(0, json!({"method": "x"})), None), Some(LEGACY[2]), "from then on");
        assert_eq!(pipe.shown(&message(0, json!({"method": "x"})), Some(LEGACY[1])), Some(LEGACY[1]));
        let mut http = Observer::new(Wire::Http, Between::Nothing);
        assert_eq!(http.shown(&opened, None), Some(LEGACY[2]));
        assert_eq!(http.shown(&message(0, json!({"method": "x"})), Some("1999-01-01")), None);
    }

    #[test]
    fn over_http_the_exchange_tells_what_is_answered() {
        let mut http = Observer::new(Wire::Http, Between::Nothing);
        http.sent(1, b"", &[("MCP-Protocol-Version", MODERN)], None);
        http.sent(2, b"", &[], Some(LEGACY[3]));
        http.sent(3, b"", &[], None);
        let head = |exchange| {
            Arrival::Head(exchange, crate::arrival::Head { status: 405, headers: http::HeaderMap::new() })
        };
        assert_eq!(http.shown(&head(1), None), Some(MODERN));
        assert_eq!(http.shown(&head(2), None), Some(LEGACY[3]));
        assert_eq!(http.shown(&head(3), None), None);
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let own = str::to_owned;
        for (between, said) in [(Between::Gateway, false), (Between::Nothing, true)] {
            let (package, test, wire) = (own("cli"), own("life_01_it"), own("sse"));
            let note = Note { package, test, revision: own(MODERN), wire, between, said };
            assert_eq!(Note::read(&note.line()), Some(note));
        }
        assert_eq!(Note::read("cli\tlife"), None);
        assert_eq!(Note::read("cli\tlife\t1\tsse\tperhaps\tseen"), None);
    }

    #[test]
    fn a_test_has_its_name_on_a_thread_without_one() {
        let on_a_thread = || {
            assert_eq!(test_name(), None);
            let names = run("named", async {
                let spawned = tokio::spawn(async { test_name() }).await.unwrap();
                [test_name(), spawned]
            });
            assert_eq!(names, [Some("named".to_owned()), Some("named".to_owned())]);
            let failed = std::panic::catch_unwind(|| run("failing", async { panic!("the test fails") }));
            assert!(failed.is_err());
            assert_eq!(test_name(), None, "the next test has another name");
        };
        std::thread::spawn(on_a_thread).join().unwrap();
    }

    #[test]
    fn a_test_that_nobody_named_has_the_name_of_its_thread() {
        let named = std::thread::Builder::new().name("module::of_libtest".to_owned());
        let name = named.spawn(test_name).unwrap().join().unwrap();
        assert_eq!(name.as_deref(), Some("of_libtest"));
    }

    #[test]
    fn serve_and_stdio_of_dateline_are_gateways() {
        let of = |program: &str, args: &[&str]| between(Command::new(program).args(args));
        assert_eq!(of("/x/dateline", &["--log-level", "info", "serve"]), Between::Gateway);
        assert_eq!(of("dateline", &["stdio"]), Between::Gateway);
        assert_eq!(of("dateline", &["demo", "--stdio"]), Between::Nothing);
        assert_eq!(of("other", &["serve"]), Between::Nothing);
        let _port = remember_port("http://0.0.0.0:4400/mcp", Between::Gateway);
        assert_eq!(between_at("http://127.0.0.1:4400/sse"), Between::Gateway);
        assert_eq!(between_at("http://127.0.0.1:4401/mcp"), Between::Nothing);
    }
}
