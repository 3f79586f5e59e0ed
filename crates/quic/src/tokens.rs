//! Log of used address validation tokens, so that each is accepted once (RFC 9000 §8.1.4).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use host::invariant::holds;
use quinn_proto::{TokenLog, TokenReuseError};

/// Time in which a token of a NEW_TOKEN frame is accepted.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_secs(3600);
/// Tokens remembered per half of the lifetime. When they are used up, further tokens are ignored: their clients
/// validate their address with the handshake. 2 × 8192 × 16 bytes are a quarter of a megabyte.
const USED_MAX: usize = 8192;

/// Used tokens, in two halves by their time of issue.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    /// Number of the current half, counted from 1970.
    number: u64,
    /// Nonces of tokens issued in the current half, in the previous one and in the one before.
    nonces: [HashSet<u128>; 3],
}

impl TokenLog for UsedTokens {
    fn check_and_insert(&self, nonce: u128, issued: SystemTime, lifetime: Duration) -> Result<(), TokenReuseError> {
        let half = lifetime.as_secs().max(2) / 2;
        let number = issued.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / half;
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = halves.number;
        while halves.number < number {
            halves.nonces.rotate_right(1);
            halves.nonces[0].clear();
            halves.number = if number - halves.number > 3 { number - 3 } else { halves.number + 1 };
        }
        holds(halves.number >= number.max(newest), "the current half is the newest");
        let age = usize::try_from(halves.number - number).unwrap_or(usize::MAX);
        let used = halves.nonces.get_mut(age).ok_or(TokenReuseError)?;
        let is_new = used.len() < USED_MAX && used.insert(nonce);
        holds(used.len() <= USED_MAX, "the number of remembered tokens is bounded");
        if is_new { Ok(()) } else { Err(TokenReuseError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn accepts_a_token_once() {
        let log = UsedTokens::default();
        let takes = |nonce, issued| log.check_and_insert(nonce, at(issued), TOKEN_LIFETIME).is_ok();
        assert!(takes(1, 1_000_000));
        assert!(!takes(1, 1_000_000));
        assert!(takes(2, 1_000_000));
        // Tokens of the previous hour are still known after newer ones.
        assert!(takes(3, 1_003_600));
        assert!(!takes(1, 1_000_000));
        // Tokens that are too old to be remembered are ignored.
        assert!(takes(4, 2_000_000));
        assert!(!takes(5, 1_000_000));
    }

    #[test]
    fn ignores_tokens_when_it_is_full() {
        let log = UsedTokens::default();
        let taken = (0..10_000).filter(|nonce| log.check_and_insert(*nonce, at(1_000_000), TOKEN_LIFETIME).is_ok());
        assert_eq!(taken.count(), USED_MAX);
    }
}
