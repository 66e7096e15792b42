//! The keys that seal what clients keep between requests: of this process, or of `--key-file`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{self, GeneralPurpose, GeneralPurposeConfig};
use dateline::CancellationToken;
use dateline::seal::{Key, Keys, ProcessKey};

use crate::exit::Failure;
use crate::file_watch::FileWatch;
use crate::permissions;
use crate::terminal::say;

/// The keys of this process.
#[derive(Clone)]
pub(crate) enum Keyring {
    /// A random key that ends with the process.
    Process(ProcessKey),
    /// The keys of a file, which other processes may share.
    File(Arc<KeyFile>),
}

impl Keys for Keyring {
    fn keys(&self) -> Vec<Key> {
        match self {
            Keyring::Process(key) => key.keys(),
            Keyring::File(file) => file.keys.read().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// A file of keys, as it was last read.
pub(crate) struct KeyFile {
    path: PathBuf,
    keys: RwLock<Vec<Key>>,
}

impl Keyring {
    /// Makes a random key that ends with the process.
    pub(crate) fn process() -> Result<Keyring, Failure> {
        let key = ProcessKey::new().map_err(|e| Failure::Other(format!("no key could be made: {e}")))?;
        Ok(Keyring::Process(key))
    }

    /// Reads the keys of a file, and reads them again when it changes. Without a file, makes a key of this process.
    pub(crate) fn open(file: Option<PathBuf>, shutdown: &CancellationToken) -> Result<Keyring, Failure> {
        let Some(path) = file else { return Keyring::process() };
        let keys = read(&path).map_err(Failure::Usage)?;
        if let Some(warning) = permissions::warning(&path) {
            say(&format!("dateline: warning: {warning}"));
        }
        let file = Arc::new(KeyFile { path, keys: RwLock::new(keys) });
        tokio::spawn(reload(Arc::clone(&file), shutdown.clone()));
        Ok(Keyring::File(file))
    }
}

/// Reads the file again whenever it changes. A file with a mistake changes nothing: what the keys sealed would be lost.
async fn reload(file: Arc<KeyFile>, shutdown: CancellationToken) {
    let Some(mut changes) = FileWatch::of(&file.path, "the key file") else { return };
    while changes.next(&shutdown).await {
        match read(&file.path) {
            Ok(keys) => {
                let mut current = file.keys.write().unwrap_or_else(PoisonError::into_inner);
                if *current != keys {
                    let count = if keys.len() == 1 { "1 key".into() } else { format!("{} keys", keys.len()) };
                    say(&format!("dateline: {} was read again: {count}", file.path.display()));
                    *current = keys;
                }
            }
            Err(why) => say(&format!(
                "dateline: the changed key file is not used, and the last keys still are: {why}"
            )),
        }
    }
}

fn read(path: &Path) -> Result<Vec<Key>, String> {
    let shown = path.display();
    let make = format!("dateline key > {shown}");
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("cannot read the key file {shown}: {e}. To make one: {make}"))?;
    let mut keys = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line may be a secret, so it is not shown.
        keys.push(key(line).map_err(|is| {
            format!(
                "{shown}:{}: this is not a key: it {is}. A key is 32 bytes, in base64 or hex, on a line of its own; to make \
                 one: `dateline key` or `openssl rand -base64 32`",
                at + 1
            )
        })?);
    }
    if keys.is_empty() { Err(format!("there is no key in {shown}. To make one: {make}")) } else { Ok(keys) }
}

/// Reads a key; an error says what the text is instead.
fn key(text: &str) -> Result<Key, String> {
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let base64 = |alphabet| GeneralPurpose::new(alphabet, lenient).decode(text).ok();
    // No key in base64 consists of the digits of hex alone, but for one in 10^19.
    let bytes = hex(text).or_else(|| [STANDARD, URL_SAFE].iter().find_map(base64));
    let bytes = bytes.ok_or("is neither base64 nor hex")?;
    let length = bytes.len();
    bytes.try_into().map_err(|_| format!("has {length} bytes"))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| digit.try_into().ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// A new key, as text.
pub(crate) fn new_key() -> Result<String, Failure> {
    let key = Keyring::process()?.keys().into_iter().next().unwrap_or_default();
    Ok(general_purpose::STANDARD.encode(key))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_each_way_of_writing_them() {
        let bytes: Key = std::array::from_fn(|at| 251 - u8::try_from(at).unwrap() * 4);
        let hex = hex::encode(bytes);
        for text in [
            general_purpose::STANDARD.encode(bytes),
            general_purpose::STANDARD_NO_PAD.encode(bytes),
            general_purpose::URL_SAFE.encode(bytes),
            general_purpose::URL_SAFE_NO_PAD.encode(bytes),
            hex.to_uppercase(),
            hex.clone(),
        ] {
            assert_eq!(key(&text), Ok(bytes), "{text}");
        }
        for (text, is) in [
            (&hex[..62], "has 31 bytes"),
            (&format!("{hex}00"), "has 33 bytes"),
            ("c2VjcmV0", "has 6 bytes"),
            ("a secret of ours", "is neither base64 nor hex"),
        ] {
            assert_eq!(key(text), Err(is.to_owned()), "{text}");
        }
    }
}
