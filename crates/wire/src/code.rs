//! Protocol numbers and their mnemonics (IANA "Domain Name System (DNS) Parameters").

use core::fmt;
use core::str::FromStr;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident($repr:ty), unknown = $prefix:literal { $($(#[$cdoc:meta])* $konst:ident = $value:literal => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub $repr);

        #[allow(missing_docs, reason = "the constants are the IANA mnemonics themselves")]
        impl $name {
            $($(#[$cdoc])* pub const $konst: $name = $name($value);)*

            /// Returns the mnemonic, or `None` if the number has none.
            #[must_use]
            pub const fn mnemonic(self) -> Option<&'static str> {
                match self.0 { $($value => Some($text),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.mnemonic() {
                    Some(text) => f.write_str(text),
                    None => write!(f, concat!($prefix, "{}"), self.0),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = UnknownMnemonic;

            /// Parses a mnemonic in any case, or the generic form such as `TYPE65280` (RFC 3597 §5).
            fn from_str(text: &str) -> Result<Self, UnknownMnemonic> {
                $(if text.eq_ignore_ascii_case($text) { return Ok($name($value)); })*
                let generic = text.get(..$prefix.len()).filter(|head| head.eq_ignore_ascii_case($prefix));
                generic.and_then(|_| text[$prefix.len()..].parse().ok()).map($name).ok_or(UnknownMnemonic)
            }
        }
    };
}

/// Error for a text that is not a mnemonic of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMnemonic;

impl fmt::Display for UnknownMnemonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown mnemonic")
    }
}

codes! {
    /// Resource record type or query type.
    Type(u16), unknown = "TYPE" {
        A = 1 => "A", NS = 2 => "NS", MD = 3 => "MD", MF = 4 => "MF", CNAME = 5 => "CNAME", SOA = 6 => "SOA",
        MB = 7 => "MB", MG = 8 => "MG", MR = 9 => "MR", NULL = 10 => "NULL", WKS = 11 => "WKS", PTR = 12 => "PTR",
        HINFO = 13 => "HINFO", MINFO = 14 => "MINFO", MX = 15 => "MX", TXT = 16 => "TXT", RP = 17 => "RP",
        AFSDB = 18 => "AFSDB", X25 = 19 => "X25", ISDN = 20 => "ISDN", RT = 21 => "RT", NSAP_PTR = 23 => "NSAP-PTR",
        SIG = 24 => "SIG", KEY = 25 => "KEY", PX = 26 => "PX", GPOS = 27 => "GPOS", AAAA = 28 => "AAAA",
        LOC = 29 => "LOC", NXT = 30 => "NXT", EID = 31 => "EID", NIMLOC = 32 => "NIMLOC", SRV = 33 => "SRV",
        ATMA = 34 => "ATMA", NAPTR = 35 => "NAPTR", KX = 36 => "KX", CERT = 37 => "CERT", DNAME = 39 => "DNAME",
        OPT = 41 => "OPT", APL = 42 => "APL", DS = 43 => "DS", SSHFP = 44 => "SSHFP", IPSECKEY = 45 => "IPSECKEY",
        RRSIG = 46 => "RRSIG", NSEC = 47 => "NSEC", DNSKEY = 48 => "DNSKEY", DHCID = 49 => "DHCID",
        NSEC3 = 50 => "NSEC3", NSEC3PARAM = 51 => "NSEC3PARAM", TLSA = 52 => "TLSA", SMIMEA = 53 => "SMIMEA",
        HIP = 55 => "HIP", NINFO = 56 => "NINFO", RKEY = 57 => "RKEY", TALINK = 58 => "TALINK", CDS = 59 => "CDS",
        CDNSKEY = 60 => "CDNSKEY", OPENPGPKEY = 61 => "OPENPGPKEY", CSYNC = 62 => "CSYNC", ZONEMD = 63 => "ZONEMD",
        SVCB = 64 => "SVCB", HTTPS = 65 => "HTTPS", SPF = 99 => "SPF", UINFO = 100 => "UINFO", UID = 101 => "UID",
        GID = 102 => "GID", UNSPEC = 103 => "UNSPEC", NID = 104 => "NID", L32 = 105 => "L32", L64 = 106 => "L64",
        LP = 107 => "LP", EUI48 = 108 => "EUI48", EUI64 = 109 => "EUI64", NXNAME = 128 => "NXNAME",
        TKEY = 249 => "TKEY", TSIG = 250 => "TSIG", IXFR = 251 => "IXFR", AXFR = 252 => "AXFR", MAILB = 253 => "MAILB",
        MAILA = 254 => "MAILA", ANY = 255 => "ANY", URI = 256 => "URI", CAA = 257 => "CAA", AVC = 258 => "AVC",
        AMTRELAY = 260 => "AMTRELAY", RESINFO = 261 => "RESINFO", TA = 32768 => "TA", DLV = 32769 => "DLV",
    }
}

codes! {
    /// Record class.
    Class(u16), unknown = "CLASS" {
        IN = 1 => "IN", CS = 2 => "CS", CH = 3 => "CH", HS = 4 => "HS", NONE = 254 => "NONE", ANY = 255 => "ANY",
    }
}

codes! {
    /// Response code, including the upper eight bits from EDNS (RFC 6891 §6.1.3).
    Rcode(u16), unknown = "RCODE" {
        NOERROR = 0 => "NOERROR", FORMERR = 1 => "FORMERR", SERVFAIL = 2 => "SERVFAIL", NXDOMAIN = 3 => "NXDOMAIN",
        NOTIMP = 4 => "NOTIMP", REFUSED = 5 => "REFUSED", YXDOMAIN = 6 => "YXDOMAIN", YXRRSET = 7 => "YXRRSET",
        NXRRSET = 8 => "NXRRSET", NOTAUTH = 9 => "NOTAUTH", NOTZONE = 10 => "NOTZONE", BADVERS = 16 => "BADVERS",
        BADKEY = 17 => "BADKEY", BADTIME = 18 => "BADTIME", BADMODE = 19 => "BADMODE", BADNAME = 20 => "BADNAME",
        BADALG = 21 => "BADALG", BADTRUNC = 22 => "BADTRUNC", BADCOOKIE = 23 => "BADCOOKIE",
    }
}

codes! {
    /// Operation code.
    Opcode(u8), unknown = "OPCODE" {
        QUERY = 0 => "QUERY", IQUERY = 1 => "IQUERY", STATUS = 2 => "STATUS", NOTIFY = 4 => "NOTIFY",
        UPDATE = 5 => "UPDATE", DSO = 6 => "DSO",
    }
}

impl Type {
    /// Returns true for AXFR and IXFR. Zone transfers are message streams and are never answered from a cache or over
    /// UDP.
    #[must_use]
    pub const fn is_transfer(self) -> bool {
        matches!(self, Type::AXFR | Type::IXFR)
    }

    /// Returns true for A and AAAA.
    #[must_use]
    pub const fn is_address(self) -> bool {
        matches!(self, Type::A | Type::AAAA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_all_mnemonics_and_generic_forms() {
        for number in 0..=u16::MAX {
            let (rtype, class, rcode) = (Type(number), Class(number), Rcode(number));
            assert_eq!(rtype.to_string().to_lowercase().parse(), Ok(rtype));
            assert_eq!(class.to_string().parse(), Ok(class));
            assert_eq!(rcode.to_string().parse(), Ok(rcode));
        }
        assert_eq!("TYPE70000".parse::<Type>(), Err(UnknownMnemonic));
        assert_eq!("ÄÄ".parse::<Type>(), Err(UnknownMnemonic));
    }
}
