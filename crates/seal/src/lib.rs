//! Seals what a client keeps for a server between requests, so that the client can neither read nor change it.
//!
//! Request state and cursors are encrypted and authenticated (XChaCha20-Poly1305), and bound to a purpose, a
//! principal and an expiry. Any process that has the key can open them
//! (<https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow>).

mod canonical;
mod page;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use proto::{Principal, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use spec::meta;

pub use page::{page, paged};

const NONCE: usize = 24;

/// How long a client may take to answer a question: a user may be at lunch. What a request state keeps is lost after that.
pub const STATE_TTL: Duration = Duration::from_secs(3600);
/// How many entries a page of a list has at most where nothing else is set: some hundred kilobytes of tools.
pub const PAGE_SIZE: usize = 250;

/// A key of 256 bits.
pub type Key = [u8; 32];

/// A clock, so that tests can set the time.
pub trait Clock: Send + Sync + 'static {
    /// Gives the present time.
    fn now(&self) -> SystemTime;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A source of keys.
pub trait Keys: Send + Sync + 'static {
    /// Gives the keys. The first one seals and all of them open, so a key can be replaced while clients still hold what it
    /// sealed.
    fn keys(&self) -> Vec<Key>;
}

/// A key that is made when the process starts and lost when it ends.
#[derive(Clone)]
pub struct ProcessKey(Key);

impl ProcessKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn new() -> Result<ProcessKey, getrandom::Error> {
        let mut key = Key::default();
        getrandom::fill(&mut key)?;
        Ok(ProcessKey(key))
    }
}

impl Keys for ProcessKey {
    fn keys(&self) -> Vec<Key> {
        vec![self.0]
    }
}

/// Seals values and opens them.
#[derive(Clone)]
pub struct Sealer {
    keys: Arc<dyn Keys>,
    clock: Arc<dyn Clock>,
}

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    /// Seconds since 1970 after which it no longer opens.
    exp: u64,
    #[serde(rename = "v")]
    value: T,
}

/// The error of a value that does not open. All causes look alike, so a client learns nothing from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it was not issued here, belongs to another request, or has expired")]
pub struct Unsealable;

impl Sealer {
    /// Makes a sealer of keys and a clock.
    pub fn new(keys: impl Keys, clock: impl Clock) -> Sealer {
        Sealer { keys: Arc::new(keys), clock: Arc::new(clock) }
    }

    fn seconds(&self) -> u64 {
        self.clock.now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// Seals a value for a time, rounded down to seconds. It opens only with the same purpose and principal.
    ///
    /// # Errors
    /// When there is no key or no randomness.
    pub fn seal<T: Serialize>(
        &self,
        purpose: &str,
        principal: &Principal,
        ttl: Duration,
        value: &T,
    ) -> Result<String, Unsealable> {
        let key = self.keys.keys().into_iter().next().ok_or(Unsealable)?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| Unsealable)?;
        let sealed = Sealed { exp: self.seconds().saturating_add(ttl.as_secs()), value };
        let plain = serde_json::to_vec(&sealed).map_err(|_| Unsealable)?;
        let bound = bound(purpose, principal);
        let cipher = XChaCha20Poly1305::new(&key.into());
        let secret = cipher
            .encrypt(&XNonce::from(nonce), Payload { msg: &plain, aad: &bound })
            .map_err(|_| Unsealable)?;
        Ok(BASE64.encode([&nonce[..], &secret].concat()))
    }

    /// Opens a value that was sealed for this purpose and principal.
    ///
    /// # Errors
    /// When it was sealed for others or not by these keys, or its time is over.
    pub fn open<T: DeserializeOwned>(
        &self,
        purpose: &str,
        principal: &Principal,
        sealed: &str,
    ) -> Result<T, Unsealable> {
        let bytes = BASE64.decode(sealed).map_err(|_| Unsealable)?;
        let (nonce, secret) = bytes.split_first_chunk::<NONCE>().ok_or(Unsealable)?;
        let bound = bound(purpose, principal);
        let open = |key: Key| {
            let cipher = XChaCha20Poly1305::new(&key.into());
            cipher.decrypt(&XNonce::from(*nonce), Payload { msg: secret, aad: &bound }).ok()
        };
        let plain = self.keys.keys().into_iter().find_map(open).ok_or(Unsealable)?;
        let sealed: Sealed<T> = serde_json::from_slice(&plain).map_err(|_| Unsealable)?;
        if sealed.exp < self.seconds() { Err(Unsealable) } else { Ok(sealed.value) }
    }
}

/// Gives the purpose of a request's state: the method, and all params that a retry repeats, as values. A client may
/// write an object's members in another order when it sends them again, and `1` for `1.0`; any other difference is one.
pub fn purpose(request: &Request) -> String {
    let repeated = request.params.iter().filter(|(name, _)| **name != meta::META);
    let params = canonical::object(repeated.map(|(name, value)| (&**name, value)));
    format!("{} {:x}", request.method.wire(), Sha256::digest(params))
}

/// Both, told apart: a length goes before the first one, and the other one is the rest.
fn bound(purpose: &str, principal: &Principal) -> Vec<u8> {
    let length = (purpose.len() as u64).to_be_bytes();
    [&length, purpose.as_bytes(), principal.as_str().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Fixed(Mutex<SystemTime>);
    impl Clock for Arc<Fixed> {
        fn now(&self) -> SystemTime {
            *self.0.lock().unwrap()
        }
    }
    struct Ring(Mutex<Vec<Key>>);
    impl Keys for Arc<Ring> {
        fn keys(&self) -> Vec<Key> {
            self.0.lock().unwrap().clone()
        }
    }

    #[test]
    fn opens_for_the_same_purpose_principal_and_time_only() {
        let clock = Arc::new(Fixed(Mutex::new(UNIX_EPOCH + Duration::from_secs(1000))));
        let ring = Arc::new(Ring(Mutex::new(vec![[1; 32]])));
        let sealer = Sealer::new(ring.clone(), clock.clone());
        let me = Principal::local();
        let sealed = sealer.seal("p", &me, Duration::from_secs(60), &"secret").unwrap();
        assert!(!sealed.contains("secret"));
        let open = |purpose, who: &Principal, text: &str| sealer.open::<String>(purpose, who, text);
        assert_eq!(open("p", &me, &sealed).as_deref(), Ok("secret"));
        assert_eq!(open("q", &me, &sealed), Err(Unsealable));
        assert_eq!(open("p", &Principal::anonymous(), &sealed), Err(Unsealable));
        assert_eq!(open("p", &me, &format!("{sealed}-TAMPERED")), Err(Unsealable));
        assert_eq!(open("p", &me, ""), Err(Unsealable));
        *ring.0.lock().unwrap() = vec![[2; 32], [1; 32]];
        assert_eq!(open("p", &me, &sealed).as_deref(), Ok("secret"), "a rotated key still opens");
        *ring.0.lock().unwrap() = vec![[2; 32]];
        assert_eq!(open("p", &me, &sealed), Err(Unsealable));
        *ring.0.lock().unwrap() = vec![[1; 32]];
        *clock.0.lock().unwrap() += Duration::from_secs(61);
        assert_eq!(open("p", &me, &sealed), Err(Unsealable));
    }

    #[test]
    fn mrtr_04_what_is_bound_together_is_not_read_in_two_ways() {
        let of = |params: &'static str| {
            let peer = proto::Peer {
                revision: spec::Revision::LATEST_MODERN,
                capabilities: Arc::default(),
                client: None,
                log_level: None,
                principal: Principal::local(),
            };
            purpose(&Request {
                id: proto::wire::Id::read(&proto::Raw::literal("1")).unwrap(),
                method: spec::Method::ToolsCall,
                params: Arc::new(proto::Raw::literal(params).object().unwrap()),
                answers: None,
                peer: Arc::new(peer),
                wants_progress: false,
                events: proto::EventSink::discard(),
            })
        };
        assert_ne!(of(r#"{"a":1,"b":2}"#), of(r#"{"a1b":2}"#));
        assert_ne!(of(r#"{"a":12345678901234567890123}"#), of(r#"{"a":12345678901234567890124}"#));
        assert_eq!(of(r#"{"a":{"x":1,"y":2},"b":2}"#), of(r#"{ "b":2.0, "a":{"y":2,"x":1} }"#));
    }
}
