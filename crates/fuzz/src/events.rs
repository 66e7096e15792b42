//! Event streams.

use transport::fuzzing::{FromServer, events};

/// How many bytes of an unfinished event are kept.
const LIMIT: usize = 256;

/// The events do not depend on how a network cuts the stream, and only an event over the limit is refused.
pub(crate) fn read(input: &[u8]) {
    // The first byte says how the rest is cut.
    let Some((cut, stream)) = input.split_first() else { return };
    let whole = events(std::iter::once(stream), LIMIT);
    let pieces = events(stream.chunks(usize::from(*cut) + 1), LIMIT);
    let single = events(stream.chunks(1), LIMIT);
    assert_eq!(whole, pieces);
    assert_eq!(whole, single);
    if stream.len() <= LIMIT {
        assert!(!whole.contains(&None), "less than the limit was refused");
    }
    for FromServer { data, id, .. } in whole.into_iter().chain(pieces).chain(single).flatten() {
        assert!(data.len() <= stream.len());
        assert!(id.is_none_or(|id| !id.contains(['\0', '\n', '\r'])));
    }
}
