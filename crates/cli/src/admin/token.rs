//! The tokens that the admin API requires over HTTP: `--admin-token-file`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use dateline::CancellationToken;
use gateway::admin::Refused;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::exit::Failure;
use crate::file_watch::FileWatch;
use crate::permissions;
use crate::terminal::say;

/// The length of the shortest token: 16 characters of base64 are 12 random bytes, which nobody guesses.
const SHORTEST: usize = 16;

/// The digest of a token. All digests have the same length, so a comparison tells nothing about that of the token.
type TokenDigest = [u8; 32];

/// A file of tokens, as it was last read.
pub(crate) struct Tokens {
    path: PathBuf,
    known: RwLock<Vec<TokenDigest>>,
}

impl Tokens {
    /// Reads the tokens of a file, and reads them again when it changes.
    pub(crate) fn open(
        file: Option<PathBuf>,
        shutdown: &CancellationToken,
    ) -> Result<Option<Arc<Tokens>>, Failure> {
        let Some(path) = file else { return Ok(None) };
        let known = read(&path).map_err(Failure::Usage)?;
        if let Some(warning) = permissions::warning(&path) {
            say(&format!("dateline: warning: {warning}"));
        }
        let token = Arc::new(Tokens { path, known: RwLock::new(known) });
        tokio::spawn(reload(Arc::clone(&token), shutdown.clone()));
        Ok(Some(token))
    }

    /// Whether a request brings one of the tokens. The time that this takes does not depend on how much of one is right.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(header::AUTHORIZATION).and_then(|sent| sent.to_str().ok());
        let sent = sent.and_then(|sent| sent.split_once(' '));
        let Some((_, sent)) = sent.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return false;
        };
        let sent = digest(sent.trim());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().fold(false, |found, known| found | bool::from(known.ct_eq(&sent)))
    }
}

/// Passes on requests that bring a token, and refuses the others with 401.
pub(crate) async fn require(
    State(token): State<Arc<Tokens>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    if token.admits(request.headers()) {
        return next.run(request).await;
    }
    let why = "the admin API needs the header Authorization: Bearer TOKEN, with a token of the file that \
               --admin-token-file names";
    let body = serde_json::to_string(&Refused { error: why.to_owned() }).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"dateline admin\""));
    response
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

/// Reads the file again whenever it changes. A file with a mistake changes nothing.
async fn reload(token: Arc<Tokens>, shutdown: CancellationToken) {
    let Some(mut changes) = FileWatch::of(&token.path, "the admin token file") else { return };
    while changes.next(&shutdown).await {
        match read(&token.path) {
            Ok(known) => *token.known.write().unwrap_or_else(PoisonError::into_inner) = known,
            Err(why) => say(&format!(
                "dateline: the changed admin token file is not used, and the last tokens still are: {why}"
            )),
        }
    }
}

fn read(path: &Path) -> Result<Vec<TokenDigest>, String> {
    let shown = path.display();
    let make = format!("dateline key > {shown} && chmod 600 {shown}");
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("cannot read the admin token file {shown}: {e}. To make one: {make}"))?;
    let mut known = Vec::new();
    for (at, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line is a secret, so it is not shown.
        if line.len() < SHORTEST || !line.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!(
                "{shown}:{}: this is not a token: a token is a line of at least {SHORTEST} visible ASCII characters, such as \
                 `dateline key` prints",
                at + 1
            ));
        }
        known.push(digest(line));
    }
    if known.is_empty() {
        Err(format!("there is no token in {shown}. To make one: {make}"))
    } else {
        Ok(known)
    }
}
