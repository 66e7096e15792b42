//! Names of members, and those that stand twice in an object.

use bytestring::ByteString;

/// The name of a member that is set. A name that stands in the program is not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberName(pub(super) ByteString);

impl From<&'static str> for MemberName {
    fn from(name: &'static str) -> MemberName {
        MemberName(ByteString::from_static(name))
    }
}

impl From<String> for MemberName {
    fn from(name: String) -> MemberName {
        MemberName(name.into())
    }
}

impl From<ByteString> for MemberName {
    fn from(name: ByteString) -> MemberName {
        MemberName(name)
    }
}

/// Up to this many members are compared each with each, which needs no memory. Nearly all objects have fewer.
pub(super) const FEW: usize = 16;

/// Finds a name that two members have.
///
/// The work does not grow with the square of the number of members, since a peer decides how many there are.
pub(super) fn twice<V>(members: &[(ByteString, V)]) -> Option<&ByteString> {
    if members.len() <= FEW {
        let before = |at: usize| members[..at].iter().any(|(name, _)| same(name, &members[at].0));
        return (1..members.len()).find(|at| before(*at)).map(|at| &members[at].0);
    }
    let mut names: Vec<&ByteString> = members.iter().map(|(name, _)| name).collect();
    names.sort_unstable_by(|a, b| {
        count();
        a.cmp(b)
    });
    names.windows(2).find(|pair| same(pair[0], pair[1])).map(|pair| pair[1])
}

fn same(a: &ByteString, b: &ByteString) -> bool {
    count();
    a == b
}

#[cfg(test)]
thread_local! {
    /// How often two names were compared.
    pub(super) static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts a comparison, for the tests.
fn count() {
    #[cfg(test)]
    COMPARED.set(COMPARED.get() + 1);
}
