//! What targets have in common.

/// How deep, for all targets; serde_json itself takes no more than 127.
pub(crate) const DEPTH: usize = 64;

/// Splits an input at its first zero byte, for targets that take two.
pub(crate) fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    let at = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    (&input[..at], input.get(at + 1..).unwrap_or_default())
}
