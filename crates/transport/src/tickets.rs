//! Keys of TLS session tickets (RFC 5077, RFC 8446 §4.6.1).
//!
//! All workers share the keys, so a client can resume its session with any of them. They are only in memory. A key
//! encrypts tickets for [`ROTATION`], and decrypts them for [`KEPT`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use host::invariant::holds;
use rustls::server::ProducesTickets;

/// Time for which a key encrypts new tickets.
const ROTATION: Duration = Duration::from_secs(12 * 60 * 60);
/// Keys that decrypt tickets, with the current one.
const KEYS_MAX: usize = 5;
/// Time for which a key decrypts tickets.
const KEPT: Duration = Duration::from_secs(5 * ROTATION.as_secs());
/// Lifetime that clients are told, in seconds: the time for which each ticket can be decrypted, 48 hours.
const LIFETIME: u32 = 4 * 12 * 60 * 60;
/// Length of the name of a key, with which a ticket begins.
const NAME_LEN: usize = 16;
/// Length of a key in bytes.
const KEY_LEN: usize = 32;
/// Maximum length of a ticket in bytes. Client certificates are part of it. A longer one would not be ours.
const TICKET_MAX: usize = 16 << 10;

// A key decrypts each ticket that it has encrypted for its whole lifetime, and is one of those that are kept.
const _: () = assert!(ROTATION.as_secs() + LIFETIME as u64 <= KEPT.as_secs());
const _: () = assert!(KEYS_MAX as u64 * ROTATION.as_secs() >= KEPT.as_secs());

/// Key with its name.
struct Key {
    name: [u8; NAME_LEN],
    key: RandomizedNonceKey,
    since: Instant,
}

impl Key {
    /// Returns `None` if the system has no random numbers.
    fn new(now: Instant) -> Option<Arc<Key>> {
        let (mut name, mut secret) = ([0; NAME_LEN], [0; KEY_LEN]);
        rand::fill(&mut name).and_then(|()| rand::fill(&mut secret)).ok()?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &secret).ok()?;
        Some(Arc::new(Key { name, key, since: now }))
    }
}

/// Keys of session tickets, the newest first.
pub struct TicketKeys {
    keys: ArcSwap<Vec<Arc<Key>>>,
    /// Locked while keys are replaced.
    rotation: Mutex<()>,
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TicketKeys")
    }
}

impl TicketKeys {
    /// Creates a set without keys. The first ticket creates one.
    #[must_use]
    pub fn new() -> Arc<TicketKeys> {
        Arc::new(TicketKeys { keys: ArcSwap::default(), rotation: Mutex::default() })
    }

    /// Returns the key for new tickets. Replaces it if it is too old.
    fn current(&self, now: Instant) -> Option<Arc<Key>> {
        let current = || {
            let keys = self.keys.load();
            keys.first().filter(|key| now.saturating_duration_since(key.since) < ROTATION).cloned()
        };
        current().or_else(|| {
            let _alone = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
            // Another worker may have replaced it meanwhile.
            current().or_else(|| self.rotate(now))
        })
    }

    fn rotate(&self, now: Instant) -> Option<Arc<Key>> {
        let key = Key::new(now)?;
        let old = self.keys.load();
        let kept = old.iter().filter(|old| is_kept(old, now)).take(KEYS_MAX - 1).cloned();
        holds(old.iter().all(|old| old.name != key.name), "each key has a name of its own");
        self.keys.store(Arc::new([Arc::clone(&key)].into_iter().chain(kept).collect()));
        holds(self.keys.load().len() <= KEYS_MAX, "the number of keys is bounded");
        Some(key)
    }

    fn encrypt_at(&self, plain: &[u8], now: Instant) -> Option<Vec<u8>> {
        let key = self.current(now)?;
        let mut sealed = plain.to_vec();
        let nonce = key.key.seal_in_place_append_tag(Aad::from(key.name), &mut sealed).ok()?;
        let ticket = [&key.name[..], nonce.as_ref(), &sealed].concat();
        holds(ticket.len() > NAME_LEN + NONCE_LEN + plain.len(), "a ticket is longer than its content");
        (ticket.len() <= TICKET_MAX).then_some(ticket)
    }

    fn decrypt_at(&self, ticket: &[u8], now: Instant) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_MAX {
            return None;
        }
        let (name, rest) = ticket.split_first_chunk::<NAME_LEN>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.keys.load();
        let key = keys.iter().find(|key| key.name == *name && is_kept(key, now))?;
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = key.key.open_in_place(nonce, Aad::from(key.name), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

/// Returns true if a key may still decrypt tickets.
fn is_kept(key: &Key, now: Instant) -> bool {
    now.saturating_duration_since(key.since) < KEPT
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(plain, Instant::now())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(ticket, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[test]
    fn a_ticket_is_valid_for_its_lifetime_and_not_after_five_rotations() {
        let (keys, start) = (TicketKeys::new(), Instant::now());
        let ticket = keys.encrypt_at(b"session", start).unwrap();
        for hour in 0..60 {
            let now = start + HOUR * hour;
            assert!(keys.encrypt_at(b"other", now).is_some());
            assert_eq!(keys.decrypt_at(&ticket, now).as_deref(), Some(&b"session"[..]), "{hour}");
            assert!(keys.keys.load().len() <= KEYS_MAX);
        }
        assert_eq!(keys.decrypt_at(&ticket, start + HOUR * 60), None, "also without another rotation");
        assert!(keys.encrypt_at(b"other", start + HOUR * 60).is_some());
        assert_eq!(keys.decrypt_at(&ticket, start + HOUR * 60), None);
    }

    #[test]
    fn a_ticket_from_the_end_of_a_rotation_is_valid_for_its_lifetime() {
        let (keys, start) = (TicketKeys::new(), Instant::now());
        assert!(keys.encrypt_at(b"first", start).is_some());
        let late = start + ROTATION - Duration::from_secs(1);
        let ticket = keys.encrypt_at(b"late", late).unwrap();
        let lifetime = Duration::from_secs(u64::from(LIFETIME));
        assert!(keys.decrypt_at(&ticket, late + lifetime).is_some());
    }

    #[test]
    fn refuses_changed_tickets_and_those_of_others() {
        let (keys, now) = (TicketKeys::new(), Instant::now());
        let ticket = keys.encrypt_at(b"session", now).unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.decrypt_at(&changed, now), None, "{at}");
            assert_eq!(keys.decrypt_at(&ticket[..at], now), None, "{at}");
        }
        assert_eq!(TicketKeys::new().decrypt_at(&ticket, now), None);
        assert_eq!(keys.decrypt_at(&vec![0; TICKET_MAX + 1], now), None);
    }
}
