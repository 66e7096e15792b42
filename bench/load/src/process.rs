//! What a process and those below it used, from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use crate::Outcome;

/// A tick of the times in `/proc/PID/stat`: `USER_HZ` is 100 on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// A process and those below it.
pub(crate) struct Tree {
    root: u32,
    /// Processes of this name are not counted.
    without: Option<String>,
}

struct Entry {
    parent: u32,
    name: String,
    /// User and system time, its own and that of children that ended.
    ticks: u32,
}

fn entry(pid: u32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = stat.split_once(" (")?.1.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u32>().ok()).sum();
    Some(Entry { parent: fields.get(1)?.parse().ok()?, name: name.to_owned(), ticks })
}

/// A number of bytes from `/proc/PID/status`; 0 where the process ended.
fn status(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

impl Tree {
    pub(crate) fn new(root: u32, without: Option<&str>) -> Tree {
        Tree { root, without: without.map(str::to_owned) }
    }

    fn members(&self) -> Outcome<Vec<(u32, Entry)>> {
        let listed = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
        let ids = listed.filter_map(|file| file.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut all: HashMap<u32, Entry> = ids.filter_map(|pid| Some((pid, entry(pid)?))).collect();
        let mut members = Vec::new();
        let mut next = vec![self.root];
        while let Some(pid) = next.pop() {
            next.extend(all.iter().filter(|(_, entry)| entry.parent == pid).map(|(pid, _)| *pid));
            if let Some(entry) = all.remove(&pid)
                && self.without.as_ref() != Some(&entry.name)
            {
                members.push((pid, entry));
            }
        }
        if members.is_empty() { Err("the server ended".into()) } else { Ok(members) }
    }

    /// The time that processors worked for it so far.
    pub(crate) fn worked(&self) -> Outcome<Duration> {
        Ok(TICK * self.members()?.iter().map(|(_, entry)| entry.ticks).sum::<u32>())
    }

    /// The bytes that are in memory for it.
    pub(crate) fn resident(&self) -> Outcome<u64> {
        Ok(self.members()?.iter().map(|(pid, _)| status(*pid, "VmRSS")).sum())
    }

    /// The most bytes that were: the sum of what each process had at most.
    pub(crate) fn peak(&self) -> Outcome<u64> {
        Ok(self.members()?.iter().map(|(pid, _)| status(*pid, "VmHWM")).sum())
    }
}
