//! The revisions of the protocol, and sets of them.

use std::fmt;

/// A revision of the Model Context Protocol. Its name is a date.
///
/// The order of revisions is private to this crate. Other code asks [`crate::Rules`] how a revision behaves and
/// [`Revisions`] whether it has something; it never compares dates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// How a client and a server open a conversation.
///
/// These are terms of the specification: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology>.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Era {
    /// The client opens a session with an `initialize` handshake.
    Legacy,
    /// There is no handshake: every request is complete in itself.
    Modern,
}

impl Revision {
    /// Every revision, the newest first. A server offers its revisions to a client in this order.
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
    /// The revision of a legacy HTTP request that has no session and no version header.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#protocol-version-header>
    pub const UNNAMED: Revision = Revision::V2025_03_26;

    /// Returns the name that messages carry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Finds the revision of this name. Returns `None` for a name that this crate does not know.
    pub fn parse(name: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|r| r.as_str() == name)
    }

    /// Returns the era of this revision.
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

/// A set of revisions: those that have what a row describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revisions(u8);

impl Revisions {
    /// The set of no revision.
    pub const NONE: Revisions = Revisions(0);
    /// The set of all revisions.
    pub const ALL: Revisions = Revisions(0b1_1111);
    /// The revisions that open with a handshake.
    pub const LEGACY: Revisions = Revisions(0b0_1111);
    /// The revisions in which every request is complete in itself.
    pub const MODERN: Revisions = Revisions(0b1_0000);

    /// Returns the set of this revision and every later one.
    pub const fn since(first: Revision) -> Revisions {
        Revisions(Self::ALL.0 & !(first.bit() - 1))
    }

    /// Returns the set of this revision and every earlier one.
    pub const fn until(last: Revision) -> Revisions {
        Revisions((last.bit() << 1) - 1)
    }

    /// Returns the set of this one revision.
    pub const fn only(revision: Revision) -> Revisions {
        Revisions(revision.bit())
    }

    /// Returns the revisions that are in both sets.
    pub const fn and(self, other: Revisions) -> Revisions {
        Revisions(self.0 & other.0)
    }

    /// Returns the revisions that are in one of the sets, or in both.
    pub const fn or(self, other: Revisions) -> Revisions {
        Revisions(self.0 | other.0)
    }

    /// Returns the revisions that are not in the set.
    pub const fn not(self) -> Revisions {
        Revisions(Self::ALL.0 & !self.0)
    }

    /// Returns whether the revision is in the set.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & revision.bit() != 0
    }

    /// Iterates over the revisions in the set, the newest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |r| self.contains(*r))
    }

    /// Returns the newest revision of an era in the set.
    pub fn newest(self, era: Era) -> Option<Revision> {
        self.iter().find(|r| r.era() == era)
    }

    /// Returns whether the set has a revision of an era.
    pub fn serves(self, era: Era) -> bool {
        self.newest(era).is_some()
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
