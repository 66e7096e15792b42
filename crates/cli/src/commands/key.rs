//! `dateline key`.

use crate::exit::Failure;
use crate::keys;
use crate::terminal::print;

/// Prints a new key.
pub(crate) fn run() -> Result<(), Failure> {
    print(&(keys::new_key()? + "\n"))
}
