//! Texts of a peer, cut to what an error message can show.

/// Returns the first characters of a text, at most `most` of them.
///
/// A peer decides how long its texts are; an error message that repeats one has to stay readable.
pub fn clipped(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
