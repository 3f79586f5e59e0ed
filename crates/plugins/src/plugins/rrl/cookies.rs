//! Server cookies (RFC 7873, with the construction of RFC 9018): a client that returns one receives what is sent to its
//! address, so its queries are not forged.

#![allow(deprecated, reason = "the only SipHash-2-4 of the standard library; the format requires this hash")]

use core::hash::{Hasher, SipHasher};
use core::net::IpAddr;

/// Length of a client cookie in bytes.
const CLIENT_LEN: usize = 8;
/// Length in bytes of a client cookie with the server cookie of RFC 9018 §4.
const COOKIE_LEN: usize = 24;
/// Version of server cookies.
const VERSION: u8 = 1;
/// Number of secrets in a file: the current one, those before it, and one that comes next.
const SECRETS_MAX: usize = 4;
/// Length of a secret in bytes.
const SECRET_LEN: usize = 16;
/// Time in seconds for which a server cookie is valid (RFC 9018 §4.3).
const LIFETIME: i32 = 3600;
/// Difference in seconds by which the clocks of servers with the same secret may differ (RFC 9018 §4.3).
const AHEAD_MAX: i32 = 300;
/// Age in seconds at which a client gets a new server cookie (RFC 9018 §4.3).
const RENEWAL: i32 = 1800;

/// Lengths in bytes of a client cookie with a server cookie (RFC 7873 §4).
const BOTH_LEN: core::ops::RangeInclusive<usize> = 16..=40;

/// Returns true for a client cookie, alone or with a server cookie. Other options are malformed (RFC 7873 §5.2.2).
pub(super) fn is_well_formed(option: &[u8]) -> bool {
    option.len() == CLIENT_LEN || BOTH_LEN.contains(&option.len())
}

/// Secrets of this server. The first makes server cookies, and all of them verify.
pub(super) struct Secrets(Vec<(u64, u64)>);

/// File with secrets that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SecretsError {
    /// Line that is no secret, counted from 1.
    #[error("line {0}: expected a secret of 32 hexadecimal digits")]
    Line(usize),
    /// Number of secrets.
    #[error("expected 1 to {} secrets, found {}", SECRETS_MAX, .0)]
    Number(usize),
}

/// Result of the check of a query's cookie.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checked {
    /// True if the query has a server cookie that this server sent to the client's address.
    pub(super) is_valid: bool,
    /// Cookie for the response: the client cookie, and the server cookie for the next queries.
    pub(super) reply: [u8; COOKIE_LEN],
}

impl Secrets {
    /// Returns a random secret, which no other server has.
    pub(super) fn random() -> Option<Secrets> {
        let mut secret = [0; SECRET_LEN];
        aws_lc_rs::rand::fill(&mut secret).ok()?;
        Some(Secrets(vec![keys(&secret)]))
    }

    /// Reads a file with one secret per line. Text after `#` is a comment.
    ///
    /// # Errors
    /// A line is no secret, or the file has none or too many.
    pub(super) fn read(text: &[u8]) -> Result<Secrets, SecretsError> {
        let mut secrets = Vec::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
            if !line.is_empty() {
                secrets.push(keys(&secret(line).ok_or(SecretsError::Line(index + 1))?));
            }
        }
        if secrets.is_empty() || secrets.len() > SECRETS_MAX {
            return Err(SecretsError::Number(secrets.len()));
        }
        Ok(Secrets(secrets))
    }

    /// Checks the option of a query. `now` is the time in seconds since 1970, in the 32 bits of the format. Returns
    /// `None` for a malformed option.
    pub(super) fn check(&self, option: &[u8], client: IpAddr, now: u32) -> Option<Checked> {
        let own = option.first_chunk::<CLIENT_LEN>().filter(|_| is_well_formed(option))?;
        if let Ok(cookie) = <[u8; COOKIE_LEN]>::try_from(option)
            && let Some((age, maker)) = self.valid(&cookie, client, now)
        {
            let is_fresh = age < RENEWAL && maker == 0;
            let reply = if is_fresh { cookie } else { self.make(own, client, now) };
            return Some(Checked { is_valid: true, reply });
        }
        Some(Checked { is_valid: false, reply: self.make(own, client, now) })
    }

    /// Returns the age of a cookie in seconds, and the index of its secret, if it is valid.
    fn valid(&self, cookie: &[u8; COOKIE_LEN], client: IpAddr, now: u32) -> Option<(i32, usize)> {
        let (content, hash) = cookie.split_last_chunk::<8>()?;
        let time = u32::from_be_bytes(*content.last_chunk()?);
        // Serial number arithmetic (RFC 1982), as the timestamp has 32 bits.
        let age = now.wrapping_sub(time).cast_signed();
        if content.get(CLIENT_LEN) != Some(&VERSION) || !(-AHEAD_MAX..=LIFETIME).contains(&age) {
            return None;
        }
        let maker = self.0.iter().position(|keys| digest(*keys, content, client) == *hash)?;
        Some((age, maker))
    }

    fn make(&self, own: &[u8; CLIENT_LEN], client: IpAddr, now: u32) -> [u8; COOKIE_LEN] {
        let mut cookie = [0; COOKIE_LEN];
        cookie[..CLIENT_LEN].copy_from_slice(own);
        cookie[CLIENT_LEN] = VERSION;
        cookie[12..16].copy_from_slice(&now.to_be_bytes());
        let keys = self.0.first().copied().unwrap_or_default();
        let hash = digest(keys, &cookie[..16], client);
        cookie[16..].copy_from_slice(&hash);
        cookie
    }
}

/// Returns the hash of a server cookie. `content` is the client cookie and the fields before the hash.
fn digest((key0, key1): (u64, u64), content: &[u8], client: IpAddr) -> [u8; 8] {
    let mut hasher = SipHasher::new_with_keys(key0, key1);
    hasher.write(content);
    match client {
        IpAddr::V4(ip) => hasher.write(&ip.octets()),
        IpAddr::V6(ip) => hasher.write(&ip.octets()),
    }
    hasher.finish().to_le_bytes()
}

fn keys(secret: &[u8; SECRET_LEN]) -> (u64, u64) {
    let number = u128::from_le_bytes(*secret);
    #[allow(clippy::cast_possible_truncation, reason = "each is one half")]
    (number as u64, (number >> 64) as u64)
}

fn secret(digits: &[u8]) -> Option<[u8; SECRET_LEN]> {
    let digits = core::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2 * SECRET_LEN)?;
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_plain.then(|| u128::from_str_radix(digits, 16).ok())?.map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(text: &str) -> Secrets {
        Secrets::read(text.as_bytes()).unwrap()
    }

    fn bytes(digits: &str) -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    }

    fn show(checked: Option<Checked>) -> (bool, String) {
        let Checked { is_valid, reply } = checked.unwrap();
        (is_valid, reply.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";

    /// RFC 9018, appendix A.1 and A.2.
    #[test]
    fn makes_and_renews_the_cookies_of_the_rfc() {
        let (secrets, client) = (secrets(SECRET), "198.51.100.100".parse().unwrap());
        let first = "2464c4abcf10c957010000005cf79f111f8130c3eee29480";
        assert_eq!(show(secrets.check(&bytes("2464c4abcf10c957"), client, 1_559_731_985)), (false, first.to_owned()));
        let renewed = "2464c4abcf10c957010000005cf7a871d4a564a1442aca77";
        assert_eq!(show(secrets.check(&bytes(first), client, 1_559_734_385)), (true, renewed.to_owned()));
        // A cookie that is younger than half an hour stays.
        assert_eq!(show(secrets.check(&bytes(first), client, 1_559_731_985 + 1799)), (true, first.to_owned()));
    }

    /// RFC 9018, appendix A.4: the secret has changed.
    #[test]
    fn a_secret_before_the_current_one_verifies() {
        let client = "2001:db8:220:1:59de:d0f4:8769:82b8".parse().unwrap();
        let old = "dd3bdf9344b678b185a6f5cb60fca715";
        let both = secrets(&format!("445536bcd2513298075a5d379663c962 # current\n\n{old}\n"));
        let cookie = bytes("22681ab97d52c298010000005cf7c57926556bd0934c72f8");
        let renewed = "22681ab97d52c298010000005cf7c609a6bb79d16625507a".to_owned();
        assert_eq!(show(both.check(&cookie, client, 1_559_741_961)), (true, renewed));
        assert!(!secrets("445536bcd2513298075a5d379663c962").check(&cookie, client, 1_559_741_961).unwrap().is_valid);
    }

    #[test]
    fn refuses_cookies_of_others_and_of_other_times() {
        let (secrets, client): (_, IpAddr) = (secrets(SECRET), "198.51.100.100".parse().unwrap());
        let cookie = bytes("2464c4abcf10c957010000005cf79f111f8130c3eee29480");
        let is_valid = |cookie: &[u8], client, now| secrets.check(cookie, client, now).map(|checked| checked.is_valid);
        let made = 1_559_731_985_u32;
        let valid = [0, LIFETIME, -AHEAD_MAX].map(|age| is_valid(&cookie, client, made.wrapping_add_signed(age)));
        assert_eq!(valid, [Some(true); 3]);
        let invalid =
            [LIFETIME + 1, -AHEAD_MAX - 1].map(|age| is_valid(&cookie, client, made.wrapping_add_signed(age)));
        assert_eq!(invalid, [Some(false); 2]);
        assert_eq!(is_valid(&cookie, "198.51.100.101".parse().unwrap(), made), Some(false));
        for at in 0..COOKIE_LEN {
            let mut other = cookie.clone();
            other[at] ^= 1;
            assert_eq!(is_valid(&other, client, made), Some(false), "{at}");
        }
        for length in 0..50 {
            let mut other = cookie.clone();
            other.resize(length, 0);
            let is_cookie = length == CLIENT_LEN || (16..=40).contains(&length);
            let expected = is_cookie.then_some(length == COOKIE_LEN);
            assert_eq!(is_valid(&other, client, made), expected, "{length}");
        }
    }

    #[test]
    fn reads_one_to_four_secrets() {
        let error = |text: &str| Secrets::read(text.as_bytes()).err();
        assert_eq!(error(&format!("{SECRET}\n# none\n")), None);
        assert_eq!(error("# none\n"), Some(SecretsError::Number(0)));
        assert_eq!(error(&format!("{SECRET}\n").repeat(5)), Some(SecretsError::Number(5)));
        for wrong in ["e5e9", &format!("+{}", &SECRET[1..]), &format!("{SECRET}00"), "ü"] {
            assert_eq!(error(&format!("{SECRET}\n{wrong}\n")), Some(SecretsError::Line(2)), "{wrong}");
        }
    }
}
