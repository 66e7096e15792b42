//! Helpers of several targets.

/// How deep values may be nested in all targets. serde_json itself allows 127 levels.
pub(crate) const DEPTH: usize = 64;

/// Splits an input at its first zero byte, for targets that need two inputs.
pub(crate) fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    let at = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    (&input[..at], input.get(at + 1..).unwrap_or_default())
}
