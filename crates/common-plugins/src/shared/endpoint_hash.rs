//! Labels of endpoints without a hostname in kube-dns: a hash of the address.
//!
//! kube-dns hashes, with FNV-1a, the text that Go prints for its record of the address. It writes the hash as
//! hexadecimal digits without leading zeros, and then each of these digits as the two hexadecimal digits of its ASCII
//! code.

use std::fmt::{self, Write};
use std::net::IpAddr;

use cluster::dashed::LabelBuffer;
use cluster::{Address, Endpoint};

use crate::shared::service_records::Form;

/// Naming scheme of kube-dns: its endpoint labels and SRV records.
pub static KUBE_DNS: Form = Form { label: endpoint_label, priority: 10, bare_port: Some(0) };

/// Returns the label of an endpoint: its hostname, or else the hash of its address.
fn endpoint_label<'b>(endpoint: Endpoint<'b>, buffer: &'b mut LabelBuffer) -> &'b [u8] {
    match (endpoint.own_label(), endpoint.address()) {
        (Some(own), _) => own,
        (None, Address::Ip(address)) => address_label(address, buffer),
        (None, Address::Name(_)) => &[],
    }
}

/// Returns the label of an address. It is written to `buffer`.
pub fn address_label(address: IpAddr, buffer: &mut LabelBuffer) -> &[u8] {
    let hash = hash(address);
    let digits = (8 - hash.leading_zeros() / 4).max(1);
    let mut len = 0;
    for at in (0..digits).rev() {
        let code = ascii_digit(hash >> (4 * at) & 0xf);
        buffer[len] = ascii_digit(u32::from(code >> 4));
        buffer[len + 1] = ascii_digit(u32::from(code & 0xf));
        len += 2;
    }
    &buffer[..len]
}

fn ascii_digit(number: u32) -> u8 {
    // Callers pass 4 bits.
    char::from_digit(number, 16).map_or(b'0', |digit| digit as u8)
}

/// Hashes Go's `%v` text of kube-dns's record for an address, with its fixed priority, weight and TTL and without a
/// port.
fn hash(address: IpAddr) -> u32 {
    let mut hash = Fnv(FNV_OFFSET);
    // Writing to a hash cannot fail.
    let _ = write!(hash, "&{{{address} 0 10 10  false 30 0  }}");
    hash.0
}

/// 32-bit FNV-1a hash, fed with text.
struct Fnv(u32);

const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(FNV_PRIME);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_match_those_of_kube_dns() {
        // Labels recorded from kube-dns. The hash of `fd00:10:96::7` has only seven digits.
        for (address, label) in [
            ("10.0.0.1", "3234633364383235"),
            ("10.96.0.1", "6266366134663036"),
            ("1.2.3.4", "6263626163303737"),
            ("10.254.197.54", "3339386563373339"),
            ("10.96.0.10", "6464633335393634"),
            ("fd00:10:96::7", "39316435616563"),
            ("fd00:10:96::6", "3231646439383035"),
        ] {
            let mut buffer = [0; 63];
            let got = address_label(address.parse().unwrap(), &mut buffer);
            assert_eq!(std::str::from_utf8(got), Ok(label), "{address}");
        }
    }
}
