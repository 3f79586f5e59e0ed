//! Rules that add EDNS options to forwarded queries: local options, NSID and client subnet.

use core::net::IpAddr;

use config::options::{Args, Problem};
use engine::{Label, Labels, Query};
use wire::OptionCode;

/// Rule that edits one option.
#[derive(Debug)]
pub(super) struct Edit {
    code: OptionCode,
    action: Action,
    data: Data,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Replaces existing options of this code, or adds one.
    Set,
    /// Adds an option to the existing ones.
    Append,
    /// Replaces existing options of this code, if there are any.
    Replace,
    /// Removes all options of this code.
    Unset,
}

const ACTIONS: [(&str, Action); 4] =
    [("set", Action::Set), ("append", Action::Append), ("replace", Action::Replace), ("unset", Action::Unset)];

/// Source of the option's data.
#[derive(Debug)]
enum Data {
    Bytes(Box<[u8]>),
    Variable(Variable),
    /// Name of a metadata label, and its handle once the server block is built.
    Label(String, Option<Label>),
    /// Client's network (RFC 7871) with this prefix length per address family.
    Subnet {
        v4: u8,
        v6: u8,
    },
}

#[derive(Clone, Copy, Debug)]
enum Variable {
    Name,
    Type,
    ClientIp,
    ClientPort,
    Protocol,
    ServerIp,
    ServerPort,
}

const VARIABLES: [(&str, Variable); 7] = [
    ("qname", Variable::Name),
    ("qtype", Variable::Type),
    ("client_ip", Variable::ClientIp),
    ("client_port", Variable::ClientPort),
    ("protocol", Variable::Protocol),
    ("server_ip", Variable::ServerIp),
    ("server_port", Variable::ServerPort),
];

impl Edit {
    /// Parses `local ACTION CODE DATA [revert]`, `nsid ACTION [revert]` or `subnet ACTION V4BITS V6BITS [revert]`. With
    /// `unset`, the data is omitted.
    pub(super) fn read(args: &mut Args<'_>) -> Result<Edit, Problem> {
        #[derive(Clone, Copy)]
        enum Kind {
            Local,
            Nsid,
            Subnet,
        }
        let kind = args.choice(&[("local", Kind::Local), ("nsid", Kind::Nsid), ("subnet", Kind::Subnet)])?;
        let action = args.choice(&ACTIONS)?;
        let code = match kind {
            Kind::Local => read_code(args)?,
            Kind::Nsid => OptionCode::NSID,
            Kind::Subnet => OptionCode::CLIENT_SUBNET,
        };
        let data = match kind {
            Kind::Nsid => Data::Bytes(Box::default()),
            _ if action == Action::Unset => Data::Bytes(Box::default()),
            Kind::Local => read_data(args)?,
            Kind::Subnet => Data::Subnet { v4: args.number(0..=32)?, v6: args.number(0..=128)? },
        };
        // `revert` has no effect: responses never carry the options of upstreams.
        if action != Action::Unset
            && let Some(word) = args.next_word()
            && word.text != "revert"
        {
            return Err(args.bad(word, "`revert`, the only word allowed here"));
        }
        Ok(Edit { code, action, data })
    }

    /// Resolves the metadata label that the rule reads.
    pub(super) fn bind(&mut self, labels: &Labels) {
        if let Data::Label(name, label) = &mut self.data {
            *label = Some(labels.label(name));
        }
    }

    /// Returns true if the data may depend on the client's address.
    pub(super) const fn reads_client(&self) -> bool {
        match self.data {
            Data::Bytes(_) => false,
            Data::Variable(variable) => matches!(variable, Variable::ClientIp | Variable::ClientPort),
            Data::Label(..) | Data::Subnet { .. } => true,
        }
    }

    /// Edits the options that are forwarded with the query. Returns false if the rule does not apply.
    pub(super) fn apply(&self, query: &mut Query) -> bool {
        let code = self.code;
        if self.action == Action::Unset {
            query.remove_onward_options(code);
            return true;
        }
        let is_there = query.onward_options().chain(query.options()).any(|(known, _)| known == code);
        if self.action == Action::Replace && !is_there {
            return false;
        }
        let Some(data) = self.data.value(query) else { return false };
        if self.action != Action::Append {
            query.remove_onward_options(code);
        }
        query.add_onward_option(code, data);
        true
    }
}

fn read_code(args: &mut Args<'_>) -> Result<OptionCode, Problem> {
    let word = args.word()?;
    let code = match word.text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => word.text.parse(),
    };
    code.map(OptionCode).map_err(|_| args.bad(word, "the code of an option such as `0xffee`"))
}

fn read_data(args: &mut Args<'_>) -> Result<Data, Problem> {
    let word = args.word()?;
    if let Some(digits) = word.text.strip_prefix("0x") {
        let bytes = hex(digits).ok_or_else(|| args.bad(word, "pairs of hexadecimal digits after `0x`"))?;
        return Ok(Data::Bytes(bytes.into()));
    }
    let inner = word.text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let Some(inner) = inner else { return Ok(Data::Bytes(word.text.as_bytes().into())) };
    if let Some((_, variable)) = VARIABLES.iter().find(|(name, _)| *name == inner) {
        return Ok(Data::Variable(*variable));
    }
    match inner.split_once('/') {
        Some((plugin, key)) if !plugin.is_empty() && !key.is_empty() => Ok(Data::Label(inner.to_owned(), None)),
        _ => {
            let names: Vec<_> = VARIABLES.iter().map(|(name, _)| format!("`{{{name}}}`")).collect();
            Err(args.bad(word, &format!("one of {}, or a label such as `{{plugin/key}}`", names.join(", "))))
        }
    }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
            }
            _ => None,
        })
        .collect()
}

impl Data {
    fn value(&self, query: &Query) -> Option<Box<[u8]>> {
        match self {
            Data::Bytes(bytes) => Some(bytes.clone()),
            Data::Variable(variable) => variable.value(query),
            Data::Label(_, label) => Some(label.as_ref()?.value(query)?.into_bytes().into()),
            Data::Subnet { v4, v6 } => Some(subnet(query.peer.address.ip(), *v4, *v6)),
        }
    }
}

impl Variable {
    fn value(self, query: &Query) -> Option<Box<[u8]>> {
        let path = &query.peer;
        Some(match self {
            Variable::Name => query.name().to_string().into_bytes().into(),
            Variable::Type => query.qtype.0.to_be_bytes().into(),
            Variable::ClientIp => bytes_of(path.address.ip()),
            Variable::ClientPort => path.address.port().to_be_bytes().into(),
            Variable::Protocol => path.transport.label().as_bytes().into(),
            Variable::ServerIp if path.local.ip().is_unspecified() => return None,
            Variable::ServerIp => bytes_of(path.local.ip()),
            Variable::ServerPort => path.local.port().to_be_bytes().into(),
        })
    }
}

fn bytes_of(address: IpAddr) -> Box<[u8]> {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.octets().into(),
        IpAddr::V6(v6) => v6.octets().into(),
    }
}

/// Data of a client-subnet option (RFC 7871 §6): only as many bytes as the prefix needs, with the remaining bits zero.
fn subnet(address: IpAddr, v4: u8, v6: u8) -> Box<[u8]> {
    let (family, bits) = if address.to_canonical().is_ipv4() { (1, v4) } else { (2, v6) };
    let mut network = bytes_of(address).into_vec();
    network.truncate(usize::from(bits.div_ceil(8)));
    if let (Some(last), 1..) = (network.last_mut(), bits % 8) {
        *last &= 0xff << (8 - bits % 8);
    }
    [&[0, family, bits, 0][..], &network].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_subnets_to_the_bytes_of_the_prefix() {
        let of = |address: &str, v4, v6| subnet(address.parse().unwrap(), v4, v6).to_vec();
        assert_eq!(of("192.0.2.129", 24, 56), [0, 1, 24, 0, 192, 0, 2]);
        assert_eq!(of("192.0.2.129", 25, 56), [0, 1, 25, 0, 192, 0, 2, 128]);
        assert_eq!(of("192.0.2.129", 0, 56), [0, 1, 0, 0]);
        assert_eq!(of("192.0.2.255", 31, 56), [0, 1, 31, 0, 192, 0, 2, 254]);
        assert_eq!(of("2001:db8:ff:ff::1", 24, 52), [0, 2, 52, 0, 0x20, 1, 0xd, 0xb8, 0, 0xff, 0]);
        assert_eq!(of("::ffff:192.0.2.1", 8, 0), [0, 1, 8, 0, 192]);
    }

    #[test]
    fn decodes_pairs_of_hexadecimal_digits() {
        assert_eq!(hex("0aFf"), Some(vec![10, 255]));
        assert_eq!(hex(""), Some(Vec::new()));
        for bad in ["a", "+1", "0g", "\u{e4}"] {
            assert_eq!(hex(bad), None, "{bad}");
        }
    }
}
