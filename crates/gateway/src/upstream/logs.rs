//! The log of each server: what it writes to standard error, and what happens to it.
//!
//! The last lines are kept, and new ones go to whoever follows. Each server has limits of its own, so that one that writes
//! much does not push out the lines of the others.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::broadcast;

use crate::admin::{LogLine, timestamp};

/// How many lines are kept of each server: enough to scroll back over what led to a failure.
const MAX_LINES: usize = 1000;
/// How many bytes are kept of each server, so that a hundred servers need at most 25 MiB.
const MAX_BYTES: usize = 256 << 10;
/// How many bytes of a line are kept; the rest is cut off.
const MAX_LINE: usize = 8 << 10;
/// How many lines per second of one server go to dateline's own log, where the lines of all servers have to be read. The
/// others are kept here, and counted there.
const LOGGED_PER_SECOND: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");
/// How many of these lines may come at once: what a program writes when it starts is logged whole.
const LOGGED_AT_ONCE: NonZeroU32 = NonZeroU32::new(100).expect("it is not zero");
/// How many lines wait for a follower that reads slowly. It misses what comes when there are more.
const FOLLOW_QUEUE: usize = 256;

/// The last lines of every server, and the lines that follow.
pub(crate) struct Logs(Mutex<AllLogs>);

struct AllLogs {
    /// The number of the next line. Lines of several servers are put in order by it.
    next: u64,
    servers: HashMap<String, ServerLog>,
    follow: broadcast::Sender<LogLine>,
}

/// The lines of one server.
struct ServerLog {
    /// The last lines, each with its number.
    lines: VecDeque<(u64, LogLine)>,
    /// How many bytes these lines have.
    bytes: usize,
    follow: broadcast::Sender<LogLine>,
    /// The limits of [`LineKind`]s, each its own: what a server writes does not push out warnings about it.
    limits: [DefaultDirectRateLimiter; 2],
    /// How many lines were over the limit since the last one that was not.
    unlogged: u64,
}

/// What a line is.
#[derive(Clone, Copy)]
enum LineKind {
    /// Something that is only kept and logged as information.
    Note,
    /// Something that whoever runs dateline should see.
    Warning,
}

impl Default for ServerLog {
    fn default() -> ServerLog {
        let limit = || RateLimiter::direct(Quota::per_second(LOGGED_PER_SECOND).allow_burst(LOGGED_AT_ONCE));
        let (follow, _) = broadcast::channel(FOLLOW_QUEUE);
        ServerLog { lines: VecDeque::new(), bytes: 0, follow, limits: [limit(), limit()], unlogged: 0 }
    }
}

impl Default for Logs {
    fn default() -> Logs {
        let (follow, _) = broadcast::channel(FOLLOW_QUEUE);
        Logs(Mutex::new(AllLogs { next: 0, servers: HashMap::new(), follow }))
    }
}

impl Logs {
    /// Keeps a line, and logs it as information.
    pub(crate) fn note(&self, server: &str, text: &str) {
        if let Some(unlogged) = self.keep(server, text, LineKind::Note) {
            tracing::info!(server, "{}{unlogged}", clip(text));
        }
    }

    /// Keeps a line, and logs it as a warning.
    pub(crate) fn warn(&self, server: &str, text: &str) {
        if let Some(unlogged) = self.keep(server, text, LineKind::Warning) {
            tracing::warn!(server, "{}{unlogged}", clip(text));
        }
    }

    /// Keeps a line. Returns `None` when it is over the limit of lines that are logged, else what is to be logged with it:
    /// how many lines before it were over the limit.
    fn keep(&self, server: &str, text: &str, kind: LineKind) -> Option<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.next += 1;
        let number = all.next;
        let line = LogLine {
            at: timestamp(SystemTime::now()),
            server: server.to_owned(),
            text: clip(text).to_owned(),
        };
        // An error means that nobody follows.
        let _ = all.follow.send(line.clone());
        let log = all.servers.entry(server.to_owned()).or_default();
        log.bytes += line.text.len();
        log.lines.push_back((number, line.clone()));
        while log.lines.len() > MAX_LINES || log.bytes > MAX_BYTES {
            log.bytes -= log.lines.pop_front().map_or(log.bytes, |(_, old)| old.text.len());
        }
        let _ = log.follow.send(line);
        if log.limits[kind as usize].check().is_err() {
            log.unlogged += 1;
            return None;
        }
        Some(match std::mem::take(&mut log.unlogged) {
            0 => String::new(),
            lines => {
                format!(" ({lines} more were not logged; `dateline logs {server}` has the last of them)")
            }
        })
    }

    /// The kept lines of one server or of all, and a receiver of the lines that come after them.
    pub(crate) fn read(&self, server: Option<&str>) -> (Vec<LogLine>, broadcast::Receiver<LogLine>) {
        // Both are taken under one lock, so that no line is missed and none comes twice.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match server {
            Some(server) => {
                let log = all.servers.entry(server.to_owned()).or_default();
                (log.lines.iter().map(|(_, line)| line.clone()).collect(), log.follow.subscribe())
            }
            None => {
                let mut lines: Vec<&(u64, LogLine)> =
                    all.servers.values().flat_map(|log| &log.lines).collect();
                lines.sort_by_key(|(number, _)| *number);
                (lines.into_iter().map(|(_, line)| line.clone()).collect(), all.follow.subscribe())
            }
        }
    }
}

/// The beginning of a text, at most [`MAX_LINE`] bytes of it.
fn clip(text: &str) -> &str {
    let mut end = text.len().min(MAX_LINE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_s_lines_cost_the_others_none_of_theirs() {
        let logs = Logs::default();
        logs.warn("quiet", "listen to me");
        let (_, mut followed) = logs.read(Some("quiet"));
        let logged = (0..10_000)
            .filter(|n| logs.keep("loud", &format!("noise {n}"), LineKind::Note).is_some())
            .count();
        assert!(logged < 500, "{logged} of them were logged");
        assert!(
            logs.keep("loud", "it is down", LineKind::Warning).is_some(),
            "rubbish does not push out warnings"
        );
        logs.warn("quiet", "and again");
        let texts = |server| logs.read(server).0.into_iter().map(|e| e.text).collect::<Vec<_>>();
        assert_eq!(texts(Some("quiet")), ["listen to me", "and again"]);
        assert_eq!(texts(Some("loud")).len(), MAX_LINES);
        let all = texts(None);
        assert_eq!(
            (all.len(), &*all[0], &**all.last().unwrap()),
            (MAX_LINES + 2, "listen to me", "and again")
        );
        assert_eq!(followed.try_recv().unwrap().text, "and again", "who follows one misses nothing of it");
    }

    #[test]
    fn what_is_kept_of_long_lines_is_bounded() {
        let logs = Logs::default();
        let long = "ä".repeat(1 << 20);
        (0..200).for_each(|_| logs.note("loud", &long));
        let kept: usize = logs.read(Some("loud")).0.iter().map(|entry| entry.text.len()).sum();
        assert!(kept <= MAX_BYTES && kept > MAX_BYTES / 2, "{kept}");
    }
}
