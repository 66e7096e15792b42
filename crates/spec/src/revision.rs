//! The revisions of the protocol, and sets of them.

use std::fmt;

/// A revision of the Model Context Protocol, named by its date.
///
/// The order of revisions is private to this crate: code asks [`crate::Rules`] how a revision behaves and
/// [`Revisions`] whether something exists in it, and never compares dates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// The two sides of the line: how a conversation is opened.
///
/// Terms of <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology>.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Era {
    /// Opens with an `initialize` handshake and keeps a session.
    Legacy,
    /// Every request is complete in itself.
    Modern,
}

impl Revision {
    /// Every revision, the newest first: the order in which they are offered to a peer.
    pub const ALL: [Revision; 5] = [
        Revision::V2026_07_28,
        Revision::V2025_11_25,
        Revision::V2025_06_18,
        Revision::V2025_03_26,
        Revision::V2024_11_05,
    ];

    /// The newest revision that opens with a handshake.
    pub const LATEST_LEGACY: Revision = Revision::V2025_11_25;
    /// The newest revision without a handshake.
    pub const LATEST_MODERN: Revision = Revision::V2026_07_28;
    /// What a legacy HTTP request without a session and without a version header is taken for.
    pub const UNNAMED: Revision = Revision::V2025_03_26;

    /// The name as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Finds a revision by its name on the wire; `None` for one that this build does not know.
    pub fn parse(name: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|r| r.as_str() == name)
    }

    /// The side of the line that this revision is on.
    pub const fn era(self) -> Era {
        if Revisions::MODERN.contains(self) { Era::Modern } else { Era::Legacy }
    }

    const fn bit(self) -> u8 {
        1 << (self as u8)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of revisions: the lifetime of whatever a row describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revisions(u8);

impl Revisions {
    /// No revision.
    pub const NONE: Revisions = Revisions(0);
    /// All revisions.
    pub const ALL: Revisions = Revisions(0b1_1111);
    /// Those that open with a handshake.
    pub const LEGACY: Revisions = Revisions(0b0_1111);
    /// Those whose requests stand alone.
    pub const MODERN: Revisions = Revisions(0b1_0000);

    /// This revision and every later one.
    pub const fn since(first: Revision) -> Revisions {
        Revisions(Self::ALL.0 & !(first.bit() - 1))
    }

    /// Every revision up to and including this one.
    pub const fn until(last: Revision) -> Revisions {
        Revisions((last.bit() << 1) - 1)
    }

    /// This revision alone.
    pub const fn only(revision: Revision) -> Revisions {
        Revisions(revision.bit())
    }

    /// What is in both sets.
    pub const fn and(self, other: Revisions) -> Revisions {
        Revisions(self.0 & other.0)
    }

    /// What is in either set.
    pub const fn or(self, other: Revisions) -> Revisions {
        Revisions(self.0 | other.0)
    }

    /// Whether the revision is in the set.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & revision.bit() != 0
    }

    /// The revisions in the set, newest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |r| self.contains(*r))
    }

    /// The newest revision of the set that is on the given side of the line.
    pub fn newest(self, era: Era) -> Option<Revision> {
        self.iter().find(|r| r.era() == era)
    }

    /// Whether any revision of the set is on the given side of the line.
    pub fn serves(self, era: Era) -> bool {
        self.newest(era).is_some()
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
