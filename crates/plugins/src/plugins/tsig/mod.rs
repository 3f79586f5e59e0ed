//! Verifies and signs messages with shared secrets (TSIG, RFC 8945).

mod record;
mod secrets;
mod signer;

use std::collections::HashMap;

use aws_lc_rs::hmac;
use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Failure, Hooks, Plugin, Query, Response, Verdict, Worker, Zones};
use wire::{EdeCode, Name, Opcode, Rcode, Type};

use crate::shared::update_keys::UpdateKeys;
use common_plugins::shared::last_good::{self, Wanted};
use common_plugins::shared::open_error;
use record::Signed;
use signer::TsigSigner;

/// Secrets by key name.
type Secrets = HashMap<String, Vec<u8>>;

/// Parsed `tsig` line.
#[derive(Default)]
pub struct Config {
    zones: Vec<Name>,
    secrets: Secrets,
    files: Vec<String>,
    types: Required<Type>,
    opcodes: Required<Opcode>,
}

/// Set of types or opcodes that must be signed.
enum Required<T> {
    All,
    These(Vec<T>),
}

impl<T> Default for Required<T> {
    fn default() -> Self {
        Required::These(Vec::new())
    }
}

impl<T: PartialEq> Required<T> {
    fn contains(&self, one: &T) -> bool {
        match self {
            Required::All => true,
            Required::These(these) => these.contains(one),
        }
    }
}

pub static MANIFEST: Manifest<Config> =
    Manifest::new("tsig", "verify signed queries and sign their responses (TSIG)", Config::default, build)
        .arguments("tsig [ZONES...]", |config, args| {
            config.zones = args.zones()?;
            Ok(())
        })
        .properties(&[
            Property {
                usage: Usage("secret NAME KEY"),
                default: "",
                doc: "Name of a key, and its secret in base64.",
                set: set_secret,
            },
            Property {
                usage: Usage("secrets FILE"),
                default: "",
                doc: "File with keys in BIND's format: `key \"NAME\" { algorithm hmac-sha256; secret \"KEY\"; };`.",
                set: |config, args| {
                    config.files.push(args.word()?.text.clone());
                    Ok(())
                },
            },
            Property {
                usage: Usage("require all|none|QTYPE..."),
                default: "none",
                doc: "Query types that must be signed.",
                set: |config, args| {
                    config.types = required(args, "`all`, `none` or a type")?;
                    Ok(())
                },
            },
            Property {
                usage: Usage("require_opcode all|none|OPCODE..."),
                default: "none",
                doc: "Opcodes whose messages must be signed.",
                set: |config, args| {
                    config.opcodes = required(args, "`all`, `none` or an opcode")?;
                    Ok(())
                },
            },
        ]);

fn set_secret(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let word = args.word()?;
    let name = Name::from_text(&word.text).map_err(|_| args.bad(word, "the name of a key"))?;
    let secret = args.word()?;
    let bytes = zone::text::base64(&secret.text).ok_or_else(|| args.bad(secret, "a secret in base 64"))?;
    match config.secrets.insert(name.into_lowercase().to_string(), bytes) {
        Some(_) => Err(args.problem_at(word.span, format!("duplicate key `{}`", word.text))),
        None => Ok(()),
    }
}

fn required<T: core::str::FromStr>(args: &mut Args<'_>, wanted: &str) -> Result<Required<T>, Problem> {
    let mut these = Vec::new();
    for word in args.take_rest() {
        match word.text.as_str() {
            "all" => return Ok(Required::All),
            "none" => return Ok(Required::default()),
            text => these.push(text.parse().map_err(|_| args.bad(word, wanted))?),
        }
    }
    Ok(Required::These(these))
}

/// Content of a file with keys.
static KEYS: Wanted<Secrets> = Wanted { what: "a `key`", lacks: |keys| keys.is_empty() };

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(mut config) = configs.into_iter().next() else { return Ok(None) };
    for name in &config.files {
        let path = setup.path(name);
        let found = last_good::load_unless_emptied(&path, &KEYS, setup, |files| {
            let bytes = open_error::read(files, &path).map_err(SetupError::from_error)?;
            secrets::read(&bytes).map_err(|error| SetupError::new(format!("{}:{error}", path.display())))
        })?;
        config.secrets.extend(Secrets::clone(&found));
    }
    if let Some(UpdateKeys(keys)) = setup.below.find() {
        warn_of_updates(&config, &keys, setup);
    }
    let zones = setup.zones_or_keys(&config.zones);
    let plugin = Tsig { zones, secrets: config.secrets, types: config.types, opcodes: config.opcodes };
    Ok(Some(Part::new(plugin, Hooks::DOWN.with_updates())))
}

/// Warns of updates that reach a dynamic zone of the block without a signature, or that it can never accept.
fn warn_of_updates(config: &Config, keys: &[Name], setup: &mut Setup<'_>) {
    if !config.opcodes.contains(&Opcode::UPDATE) {
        setup.warn("`require_opcode UPDATE` is missing: updates without a signature are refused one step later");
    }
    let unknown = keys.iter().map(Name::to_string).filter(|key| !config.secrets.contains_key(key));
    for key in host::sorting::set(unknown) {
        setup.warn(format_args!("no secret for the key {key}, which *dynupdate* allows to change a zone"));
    }
}

struct Tsig {
    /// Zones whose queries are verified. The position of a TSIG record counts in all zones of the server block.
    zones: Zones,
    secrets: Secrets,
    types: Required<Type>,
    opcodes: Required<Opcode>,
}

impl Plugin for Tsig {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        // Subqueries of this server are exempt. The client's query was checked.
        if query.is_own() {
            return Verdict::Pass;
        }
        // A TSIG record that is the only additional record is the last one.
        if query.request.header.additionals > 1 && record::is_misplaced(&query.packet) {
            let failure = Failure::refused(EdeCode::OTHER, "the TSIG record is not the last record");
            return Verdict::Fail(Failure { rcode: Rcode::FORMERR, ..failure });
        }
        if !self.zones.contain(query.key()) {
            return Verdict::Pass;
        }
        let Some(signed) = Signed::read(&query.packet) else {
            let must = self.types.contains(&query.qtype) || self.opcodes.contains(&query.flags().opcode());
            return if must { refused("the query is not signed") } else { Verdict::Pass };
        };
        let now = worker.since_1970().as_secs();
        let key = self.secrets.get(&signed.key.to_string()).and_then(|secret| signed.key_of(secret));
        let checked = check(&signed, key.as_ref(), now);
        let (error, _) = checked.err().unwrap_or((Rcode::NOERROR, ""));
        if error == Rcode::NOERROR {
            query.set_signer(signed.key.clone());
        }
        // A response to a query that anyone could have sent is not signed (RFC 8945 §5.2.1, §5.2.2).
        let key = key.filter(|_| error != BADSIG);
        response.sign_with(Box::new(TsigSigner::new(signed, key, error, now)));
        match checked {
            Ok(()) => Verdict::Pass,
            Err((_, why)) => Verdict::Fail(Failure { rcode: Rcode::NOTAUTH, ..Failure::servfail(EdeCode::OTHER, why) }),
        }
    }
}

/// TSIG error BADSIG, which shares its number with BADVERS (RFC 8945 §3).
const BADSIG: Rcode = Rcode(16);

/// Verifies a signature. The error has the TSIG error code and the reason.
fn check(signed: &Signed, key: Option<&hmac::Key>, now: u64) -> Result<(), (Rcode, &'static str)> {
    let Some(key) = key else { return Err((Rcode::BADKEY, "TSIG: unknown key or algorithm")) };
    if !signed.is_by(key) {
        return Err((BADSIG, "TSIG: invalid signature"));
    }
    if signed.time.abs_diff(now) > u64::from(signed.fudge) {
        return Err((Rcode::BADTIME, "TSIG: signing time differs too much from the server's"));
    }
    Ok(())
}

fn refused(why: &'static str) -> Verdict {
    Verdict::Fail(Failure::refused(EdeCode::PROHIBITED, why))
}
