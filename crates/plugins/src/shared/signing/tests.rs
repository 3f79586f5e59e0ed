use std::path::PathBuf;

use super::*;
use crate::shared::signing::key::KeyError;
use wire::{Name, Type};

/// Key pair of RFC 8080 §6.1.
const PUBLIC: &str = "example.com. 3600 IN DNSKEY 257 3 15 ( l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4= )\n";
const PRIVATE: &str =
    "Private-key-format: v1.2\nAlgorithm: 15 (ED25519)\nPrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=\n";

fn read(public: &str, private: &str) -> Result<Key, KeyError> {
    let paths = ["K.key", "K.private"].map(PathBuf::from);
    Key::read([public.as_bytes(), private.as_bytes()], &paths)
}

fn mx() -> Set {
    let owner = Name::from_text("Example.com.").unwrap();
    let rdata = zone::text::record("x. MX 10 mail.example.com.", wire::NameRef::ROOT, 0).unwrap().rdata;
    Set::new(owner.as_ref(), (Type::MX, 3600), vec![rdata])
}

#[test]
fn makes_the_signature_of_rfc_8080() {
    let key = read(PUBLIC, PRIVATE).unwrap();
    assert_eq!((key.tag, key.is_entry_point, key.zone.to_string()), (3613, true, "example.com.".to_owned()));
    let period = ValidityPeriod { inception: 1_438_207_200, expiration: 1_440_021_600 };
    let wanted = "x. RRSIG MX 15 2 3600 1440021600 1438207200 3613 example.com. \
        oL9krJun7xfBOIWcGHi7mag5/hdZrKWw15jPGrHpjQeRAvTdszaPD+QLs3fx8A4M3e23mRZ9VrbpMngwcrqNAg==";
    let wanted = zone::text::record(wanted, wire::NameRef::ROOT, 0).unwrap().rdata;
    assert_eq!(key.sign(&mx(), period).unwrap(), wanted);
}

#[test]
fn names_the_error_in_a_key_file() {
    let with = |from: &str, to: &str| (PUBLIC.replace(from, to), PRIVATE.replace(from, to));
    let cases = [
        (with("l02W", "?"), "K.key:1:"),
        (with("257 3", "0 3"), "K.key:1: expected a DNSKEY record"),
        ((format!("{PUBLIC}{PUBLIC}"), PRIVATE.to_owned()), "K.key:2:"),
        (("example.com. A 192.0.2.1".to_owned(), PRIVATE.to_owned()), "K.key:1: expected a DNSKEY record"),
        ((PUBLIC.to_owned(), PRIVATE.to_owned()), ""),
        ((PUBLIC.replace("3 15", "3 13"), PRIVATE.to_owned()), "K.private:2: the algorithm"),
        (
            (PUBLIC.replace("3 15", "3 16"), PRIVATE.replace(": 15", ": 16")),
            "K.private:2: algorithm 16 is not supported",
        ),
        (with("PrivateKey: ODIy", "PrivateKey: ODIx"), "K.private:3: the private key does not match"),
        (with("PrivateKey:", "Key:"), "K.private: `PrivateKey:` is missing"),
        ((PUBLIC.to_owned(), String::new()), "K.private: the algorithm"),
    ];
    for ((public, private), wanted) in cases {
        let said = read(&public, &private).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.starts_with(wanted) && wanted.is_empty() == said.is_empty(), "{wanted}: {said}");
    }
}
