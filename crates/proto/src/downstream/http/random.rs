//! What is made of random bytes, which the transport draws.

/// How many random bytes the id of a session needs: 128 bits, which nobody guesses.
pub(super) const ID: usize = 16;

/// Says that a session cannot be opened.
pub(super) const NO_ID: &str = "no session id could be made";

/// Makes a session id of random bytes, in visible ASCII.
pub(super) fn session_id(random: [u8; ID]) -> String {
    hex::encode(random)
}
