//! Skills that are part of the program.

use dateline::{BuildError, Skills};

/// Files of `skills/`, by their paths in it.
macro_rules! files {
    ($($path:literal)*) => { [$(($path, include_bytes!(concat!("../skills/", $path)).as_slice())),*] };
}

pub(crate) fn built_in() -> Result<Skills, BuildError> {
    Skills::from_files(files! {
        "meeting-minutes/SKILL.md"
        "meeting-minutes/examples/short.md"
        "release-notes/SKILL.md"
        "release-notes/scripts/check.sh"
        "release-notes/templates/long.md"
        "release-notes/templates/short.md"
    })
}
