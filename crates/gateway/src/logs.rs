//! What servers say on stderr, and what happens to them: the last of it is kept, and passed on to who follows. Each
//! server has room of its own, so that one that says much costs the others nothing.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::broadcast;

/// How many lines are kept of a server: a screen's history.
const KEPT: usize = 1000;
/// How many bytes are kept of a server.
const WEIGHT: usize = 256 << 10;
/// How long a line may be, in bytes; the rest of a longer one is cut off.
const LONGEST: usize = 8 << 10;
/// How many lines a second of one server go to dateline's own log, where others want to be read too; what is above that
/// is counted there and kept here.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");
/// How many may come at once.
const AT_ONCE: NonZeroU32 = NonZeroU32::new(100).expect("it is not zero");
/// How many lines wait for one who follows.
const FOLLOWED: usize = 256;

/// A line.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When it was said.
    pub at: SystemTime,
    /// The server that it is of.
    pub server: String,
    /// What was said.
    pub text: String,
    /// Its place among the lines of all servers.
    pub(crate) number: u64,
}

/// The lines of all servers.
pub(crate) struct Logs(Mutex<All>);

struct All {
    next: u64,
    servers: HashMap<String, Said>,
    follow: broadcast::Sender<Entry>,
}

/// The lines of one server.
struct Said {
    kept: VecDeque<Entry>,
    weight: usize,
    follow: broadcast::Sender<Entry>,
    /// Of what it says, and of what is said of it: rubbish does not push out warnings.
    limits: [DefaultDirectRateLimiter; 2],
    unlogged: u64,
}

impl Default for Said {
    fn default() -> Said {
        let limit = || RateLimiter::direct(Quota::per_second(PER_SECOND).allow_burst(AT_ONCE));
        let (follow, _) = broadcast::channel(FOLLOWED);
        Said { kept: VecDeque::new(), weight: 0, follow, limits: [limit(), limit()], unlogged: 0 }
    }
}

impl Default for Logs {
    fn default() -> Logs {
        let (follow, _) = broadcast::channel(FOLLOWED);
        Logs(Mutex::new(All { next: 0, servers: HashMap::new(), follow }))
    }
}

impl Logs {
    /// Keeps a line.
    pub(crate) fn say(&self, server: &str, text: &str) {
        if let Some(unlogged) = self.keep(server, text, 0) {
            tracing::info!(server, "{}{unlogged}", clip(text));
        }
    }

    /// Keeps a line that whoever runs dateline should see.
    pub(crate) fn warn(&self, server: &str, text: &str) {
        if let Some(unlogged) = self.keep(server, text, 1) {
            tracing::warn!(server, "{}{unlogged}", clip(text));
        }
    }

    /// Keeps a line. Where it is to be logged too, gives what is to be said of those that were not.
    fn keep(&self, server: &str, text: &str, limit: usize) -> Option<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.next += 1;
        let entry = Entry {
            at: SystemTime::now(),
            server: server.to_owned(),
            text: clip(text).to_owned(),
            number: all.next,
        };
        // It fails when nobody follows.
        let _ = all.follow.send(entry.clone());
        let said = all.servers.entry(server.to_owned()).or_default();
        said.weight += entry.text.len();
        said.kept.push_back(entry.clone());
        while said.kept.len() > KEPT || said.weight > WEIGHT {
            said.weight -= said.kept.pop_front().map_or(said.weight, |old| old.text.len());
        }
        let _ = said.follow.send(entry);
        if said.limits[limit].check().is_err() {
            said.unlogged += 1;
            return None;
        }
        Some(match std::mem::take(&mut said.unlogged) {
            0 => String::new(),
            lines => {
                format!(" ({lines} more were not logged; `dateline logs {server}` has the last of them)")
            }
        })
    }

    /// What is kept, of one server or of all, and what comes after it.
    pub(crate) fn read(&self, server: Option<&str>) -> (Vec<Entry>, broadcast::Receiver<Entry>) {
        // Locked while both are taken: no line is missed, none comes twice.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match server {
            Some(server) => {
                let said = all.servers.entry(server.to_owned()).or_default();
                (said.kept.iter().cloned().collect(), said.follow.subscribe())
            }
            None => {
                let mut kept: Vec<Entry> =
                    all.servers.values().flat_map(|said| &said.kept).cloned().collect();
                kept.sort_by_key(|entry| entry.number);
                (kept, all.follow.subscribe())
            }
        }
    }
}

fn clip(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
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
        let logged = (0..10_000).filter(|n| logs.keep("loud", &format!("noise {n}"), 0).is_some()).count();
        assert!(logged < 500, "{logged} of them were logged");
        assert!(logs.keep("loud", "it is down", 1).is_some(), "rubbish does not push out warnings");
        logs.warn("quiet", "and again");
        let texts = |server| logs.read(server).0.into_iter().map(|e| e.text).collect::<Vec<_>>();
        assert_eq!(texts(Some("quiet")), ["listen to me", "and again"]);
        assert_eq!(texts(Some("loud")).len(), KEPT);
        let all = texts(None);
        assert_eq!((all.len(), &*all[0], &**all.last().unwrap()), (KEPT + 2, "listen to me", "and again"));
        assert_eq!(followed.try_recv().unwrap().text, "and again", "who follows one misses nothing of it");
    }

    #[test]
    fn what_is_kept_of_long_lines_is_bounded() {
        let logs = Logs::default();
        let long = "ä".repeat(1 << 20);
        (0..200).for_each(|_| logs.say("loud", &long));
        let kept: usize = logs.read(Some("loud")).0.iter().map(|entry| entry.text.len()).sum();
        assert!(kept <= WEIGHT && kept > WEIGHT / 2, "{kept}");
    }
}
