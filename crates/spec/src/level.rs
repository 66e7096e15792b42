//! The levels of log messages.

/// A log level of RFC 5424, the least severe first.
///
/// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging#log-levels>
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    /// Every level, the least severe first.
    pub const ALL: [Level; 8] = [
        Level::Debug,
        Level::Info,
        Level::Notice,
        Level::Warning,
        Level::Error,
        Level::Critical,
        Level::Alert,
        Level::Emergency,
    ];

    /// The name of every level, in the order of [`Level::ALL`].
    pub const NAMES: [&str; 8] =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

    /// Returns the name that messages carry.
    pub const fn as_str(self) -> &'static str {
        Level::NAMES[self as usize]
    }

    /// Finds the level of this name.
    pub fn parse(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|l| l.as_str() == name)
    }
}
