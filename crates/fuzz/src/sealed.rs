//! Cursors and request states, which a client keeps for a server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use proto::Principal;
use seal::{Clock, Key, Keys, Sealer};
use serde_json::Value;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1000)
    }
}

impl Keys for Fixed {
    fn keys(&self) -> Vec<Key> {
        vec![[1; 32], [2; 32]]
    }
}

/// A value that was not sealed with a known key does not open.
pub(crate) fn open(input: &[u8]) {
    let sealer = Sealer::new(Fixed, Fixed);
    let (purpose, sealed) = crate::input::halves(input);
    let purpose = String::from_utf8_lossy(purpose);
    for sealed in [String::from_utf8_lossy(sealed).into_owned(), BASE64.encode(sealed)] {
        let opened = sealer.open::<Value>(&purpose, &Principal::local(), &sealed);
        assert!(opened.is_err(), "{sealed} opens");
    }
}

/// A sealed value opens unchanged, for its own purpose and principal. One that was changed anywhere does not open.
pub(crate) fn round_trip(input: &[u8]) {
    let sealer = Sealer::new(Fixed, Fixed);
    let (purpose, value) = crate::input::halves(input);
    let (purpose, value) = (String::from_utf8_lossy(purpose), String::from_utf8_lossy(value));
    let (us, them) = (Principal::local(), Principal::anonymous());
    let sealed = sealer.seal(&purpose, &us, Duration::from_secs(60), &value).expect("there is a key");
    let open = |purpose: &str, who, sealed: &str| sealer.open::<String>(purpose, who, sealed);
    assert_eq!(open(&purpose, &us, &sealed).as_deref(), Ok(&*value));
    assert!(open(&purpose, &them, &sealed).is_err(), "it opens for another principal");
    assert!(open(&format!("{purpose}\0"), &us, &sealed).is_err(), "it opens for another purpose");
    let mut bytes = BASE64.decode(&sealed).expect("it is base64");
    let at = input.iter().map(|byte| usize::from(*byte)).sum::<usize>() % bytes.len();
    bytes[at] ^= 1;
    assert!(open(&purpose, &us, &BASE64.encode(bytes)).is_err(), "it opens though it was changed");
}
