//! Keys by which tokens are checked: fetched from the API server, and kept in a file, so that a relay that restarts
//! without the API server still knows its subscribers.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use cluster::Source;
use host::Clock;
use kubeapi::{ReadError, Reader, SetupError};
use relay::token::{Keys, KeysError, Rules, TokenError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use transport::MonotonicClock;
use transport::files::read_file;

use super::LOG;

/// Paths of the keys and of the document that names the issuer.
const KEYS: &str = "/openid/v1/jwks";
const ISSUER: &str = "/.well-known/openid-configuration";
/// Media type of the keys. API servers send them as no other.
const KEY_SET: &str = "application/jwk-set+json";
/// Media type of the other document.
const JSON: &str = "application/json";
/// Maximum size of each in bytes.
const DOCUMENT_MAX: usize = 1 << 20;
/// Interval between two requests for the keys. The API server keeps old keys for much longer than tokens are valid.
const REFRESH: Duration = Duration::from_secs(300);
/// Pause after a failure, and shortest interval between requests because of an unknown key.
const RETRY: Duration = Duration::from_secs(5);
/// Timeout of a request for the keys.
const ANSWER: Duration = Duration::from_secs(10);
/// Time that a request with an unknown key waits for new keys.
const WAIT: Duration = Duration::from_secs(2);

/// Reason why there are no new keys. The next attempt may succeed.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    /// The configuration of the API server cannot be used.
    #[error("{0}")]
    Setup(#[from] SetupError),
    /// The API server did not send a document.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The document is not JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The document has no keys.
    #[error("{0}")]
    Keys(#[from] KeysError),
    /// The API server does not name the issuer.
    #[error("the API server does not name the issuer of its tokens; use --issuer")]
    NoIssuer,
    /// The API server did not answer in time.
    #[error("no answer within {} s", ANSWER.as_secs())]
    Unanswered,
}

/// Check of tokens against the keys of their issuer, which are fetched again when a token names another key.
pub(super) struct Checker {
    keys: RefCell<Keys>,
    /// Keys as they were published, for relays behind this one.
    published: RefCell<Value>,
    rules: RefCell<Rules>,
    /// True if the command line names the issuer.
    is_issuer_fixed: bool,
    file: Option<PathBuf>,
    source: Source,
    /// Wakes the task that fetches the keys, and those that wait for them.
    wanted: Notify,
    fetched: Notify,
    last: Cell<Option<Instant>>,
}

impl Checker {
    /// Creates a checker with the keys of the file, if there is one.
    pub(super) fn new(rules: Rules, file: Option<PathBuf>, source: Source) -> Rc<Checker> {
        let checker = Checker {
            keys: RefCell::default(),
            published: RefCell::default(),
            is_issuer_fixed: !rules.issuer.is_empty(),
            rules: RefCell::new(rules),
            file,
            source,
            wanted: Notify::new(),
            fetched: Notify::new(),
            last: Cell::new(None),
        };
        if let Some(text) = checker.file.as_ref().and_then(|file| read_file(file, 2 * DOCUMENT_MAX as u64).ok())
            && let Err(problem) = checker.take(&text)
        {
            tracing::warn!(target: LOG, "The file of keys is ignored: {problem}");
        }
        Rc::new(checker)
    }

    /// Returns true if tokens can be checked.
    pub(super) fn is_ready(&self) -> bool {
        !self.keys.borrow().is_empty() && !self.rules.borrow().issuer.is_empty()
    }

    /// Returns the media type and the text of a document of the issuer, if the path is one. A relay behind this
    /// one reads them here.
    pub(super) fn document(&self, path: &str) -> Option<(&'static str, String)> {
        match path {
            KEYS => Some((KEY_SET, self.published.borrow().to_string())),
            ISSUER => Some((JSON, json!({ "issuer": self.rules.borrow().issuer }).to_string())),
            _ => None,
        }
    }

    /// Checks a token. A key that is not known may be a new one, which is fetched.
    ///
    /// # Errors
    /// The reason why the token is refused.
    pub(super) async fn check(&self, token: &str) -> Result<String, TokenError> {
        let outcome = self.check_now(token);
        let is_recent = self.last.get().is_some_and(|last| last.elapsed() < RETRY);
        if outcome != Err(TokenError::UnknownKey) || is_recent {
            return outcome;
        }
        let fetched = self.fetched.notified();
        self.wanted.notify_one();
        let _ = timeout(WAIT, fetched).await;
        self.check_now(token)
    }

    fn check_now(&self, token: &str) -> Result<String, TokenError> {
        self.keys.borrow().check(token, &self.rules.borrow(), MonotonicClock.since_1970())
    }

    /// Fetches the keys now and then, until dropped.
    pub(super) async fn run(self: Rc<Checker>) {
        let mut is_failing = false;
        loop {
            let outcome = timeout(ANSWER, self.fetch()).await.unwrap_or(Err(FetchError::Unanswered));
            self.last.set(Some(Instant::now()));
            self.fetched.notify_waiters();
            if let Err(problem) = &outcome
                && !is_failing
            {
                tracing::warn!(target: LOG, "The keys of tokens cannot be fetched: {problem}");
            }
            is_failing = outcome.is_err();
            sleep(RETRY).await;
            if !is_failing {
                let _ = timeout(REFRESH, self.wanted.notified()).await;
            }
        }
    }

    async fn fetch(&self) -> Result<(), FetchError> {
        let reader = Reader::new(&self.source)?;
        let keys = reader.get_as(KEY_SET, KEYS, DOCUMENT_MAX).await?;
        let mut document: Value = serde_json::from_slice(&keys.body)?;
        let issuer = if self.is_issuer_fixed {
            self.rules.borrow().issuer.clone()
        } else {
            let found = reader.get(ISSUER, DOCUMENT_MAX).await?;
            let found: Value = serde_json::from_slice(&found.body)?;
            found["issuer"].as_str().unwrap_or_default().to_owned()
        };
        if let Some(members) = document.as_object_mut() {
            members.insert("issuer".to_owned(), issuer.into());
        }
        let text = document.to_string();
        self.take(text.as_bytes())?;
        self.keep(&text);
        Ok(())
    }

    /// Uses a document with keys and issuer.
    fn take(&self, text: &[u8]) -> Result<(), FetchError> {
        let keys = Keys::parse(text)?;
        let document: Value = serde_json::from_slice(text)?;
        let issuer = document["issuer"].as_str().unwrap_or_default();
        if issuer.is_empty() && !self.is_issuer_fixed {
            return Err(FetchError::NoIssuer);
        }
        if !self.is_issuer_fixed {
            issuer.clone_into(&mut self.rules.borrow_mut().issuer);
        }
        *self.published.borrow_mut() = json!({ "keys": document["keys"] });
        *self.keys.borrow_mut() = keys;
        Ok(())
    }

    /// Writes the document to the file, which is replaced as a whole.
    fn keep(&self, text: &str) {
        let Some(file) = &self.file else { return };
        let fresh = file.with_extension("new");
        if let Err(error) = std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, file)) {
            let problem = host::errors::describe(&error);
            tracing::warn!(target: LOG, "The keys of tokens cannot be written to {}: {problem}", file.display());
        }
    }
}
