//! Answers unreliably to test clients: drops, delays and truncates responses.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use config::options::{Manifest, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Io, LocalFuture, Plugin, Query, Resolved, Response, Verdict, Worker};
use wire::{Flags, Header, MessageBuf, NameRef, Owner, Rcode, Reply, Section, Type};
use zone::text::Record;

use common_plugins::shared::option_helpers::FixedSearch;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "erratic",
    "answer queries unreliably to test clients",
    Config::default,
    build,
)
.first_line_wins()
.arguments("erratic [WORDS...]", |_, args| {
    args.take_rest().iter().for_each(|word| args.warn(word, "`erratic` takes no arguments; this one is ignored"));
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("drop [AMOUNT]"),
        default: "2",
        doc: "Do not answer one of AMOUNT queries. 0 if `truncate` or `delay` is given without `drop`.",
        set: |config, args| {
            config.drop = Some(if args.rest().is_empty() { AMOUNT } else { args.number(0..)? });
            Ok(())
        },
    },
    Property {
        usage: Usage("truncate [AMOUNT]"),
        default: "0",
        doc: "Set the TC flag in responses to A and AAAA queries whose number, starting at 0, has no bit in common \
              with AMOUNT. End a zone transfer of such a number before its last record.",
        set: |config, args| {
            config.truncate = Some(if args.rest().is_empty() { AMOUNT } else { args.number(0..)? });
            Ok(())
        },
    },
    Property {
        usage: Usage("delay [AMOUNT [DURATION]]"),
        default: "0",
        doc: "Delay one of AMOUNT responses by DURATION (default 100ms).",
        set: |config, args| {
            config.delay = Some(if args.rest().is_empty() { AMOUNT } else { args.number(0..)? });
            if !args.rest().is_empty() {
                config.delay_by = args.duration()?;
            }
            Ok(())
        },
    },
    Property {
        usage: Usage("large"),
        default: "off",
        doc: "Return 30 records for A queries.",
        set: |config, _| {
            config.large = true;
            Ok(())
        },
    },
])
.role(|_| Role::answers(&[], &[]));

/// Default for AMOUNT: every second query.
const AMOUNT: u64 = 2;
const DELAY: Duration = Duration::from_millis(100);
/// Number of records in a large answer.
const LARGE: usize = 30;

pub struct Config {
    drop: Option<u64>,
    truncate: Option<u64>,
    delay: Option<u64>,
    delay_by: Duration,
    large: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { drop: None, truncate: None, delay: None, delay_by: DELAY, large: false }
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(mut config) = configs.into_iter().next() else { return Ok(None) };
    if config.drop.is_none() && config.truncate.is_none() && config.delay.is_none() {
        config.drop = Some(AMOUNT);
    }
    let queries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&queries);
    setup.requests.readiness.add(MANIFEST.name, move || READY.contains(&counted.load(Ordering::Relaxed)));
    setup.below.provide(FixedSearch(SEARCH));
    Ok(Some(Part::new(Erratic { config, queries }, Hooks::DOWN)))
}

struct Erratic {
    config: Config,
    queries: Arc<AtomicU64>,
}

/// Numbers of queries after which the plugin is ready.
const READY: Range<u64> = 3..5;
/// Search path for *autopath*.
const SEARCH: &[&str] = &["a.example.org.", "b.example.org.", "."];

/// Returns true if the query with this number, starting at 0, is chosen. The first one always is.
fn is_chosen(number: u64, one_of: Option<u64>) -> bool {
    one_of.is_some_and(|amount| amount > 0 && number.is_multiple_of(amount))
}

/// Returns true if the response to the query with this number, starting at 0, is truncated.
fn is_truncated(number: u64, mask: Option<u64>) -> bool {
    mask.is_some_and(|mask| mask > 0 && number & mask == 0)
}

fn is_answered(qtype: Type) -> bool {
    qtype.is_address() || qtype == Type::AXFR
}

impl Plugin for Erratic {
    fn on_query(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let number = self.queries.fetch_add(1, Ordering::Relaxed);
        let truncated = is_truncated(number, self.config.truncate);
        if is_chosen(number, self.config.drop) {
            return Verdict::Drop;
        }
        if is_chosen(number, self.config.delay) {
            query.set_note(u64::from(truncated));
            return Verdict::Wait;
        }
        self.answer(query, &mut response.message, truncated);
        if !is_answered(query.qtype) {
            response.set_rcode(Rcode::SERVFAIL);
        }
        Verdict::Done
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Box::pin(async move {
            io.sleep_until(io.now() + self.config.delay_by).await;
            let mut message = MessageBuf::new();
            let flags = Flags::default().with_response(true);
            let flags = if is_answered(query.qtype) { flags } else { flags.with_rcode(Rcode::SERVFAIL) };
            let question = (query.name(), query.qtype, query.qclass);
            message.start(Header { flags, ..Header::default() }, Some(question));
            self.answer(query, &mut message, query.note() != 0);
            let reply = Reply::parse(message.finish(None, core::iter::empty()).to_vec());
            reply.map_or(Resolved::Pass, Resolved::Reply)
        })
    }
}

impl Erratic {
    fn answer(&self, query: &Query, message: &mut MessageBuf, truncated: bool) {
        message.header.flags = message.header.flags.with_authoritative(is_answered(query.qtype));
        match query.qtype {
            Type::A => {
                for _ in 0..if self.config.large { LARGE } else { 1 } {
                    message.push_a(Section::Answer, Owner::Question, 0, ADDRESS_V4);
                }
            }
            Type::AAAA => _ = message.push_aaaa(Section::Answer, Owner::Question, 0, ADDRESS_V6),
            Type::AXFR => push_zone(query.name(), message, !truncated),
            _ => {}
        }
        let truncated = truncated && query.qtype.is_address() || message.is_truncated();
        message.header.flags = message.header.flags.with_truncated(truncated);
    }
}

/// Writes a zone with two name servers. A transfer is complete only with its last record, the SOA record.
fn push_zone(zone: NameRef<'_>, message: &mut MessageBuf, is_complete: bool) {
    let mut records: Vec<Record> = ZONE.iter().filter_map(|line| zone::text::record(line, zone, 0).ok()).collect();
    let last = records.first().cloned().filter(|_| is_complete);
    records.extend(last);
    for Record { owner, rtype, class, ttl, rdata } in &records {
        message.push_data(Section::Answer, Owner::Name(owner.as_ref()), (*rtype, *class, *ttl), rdata);
    }
}

const ZONE: [&str; 5] = [
    "@ 0 IN SOA sns.dns.icann.org. noc.dns.icann.org. 2018050825 7200 3600 1209600 3600",
    "@ 0 IN NS b",
    "@ 0 IN NS a",
    "a 0 IN AAAA 2001:bd8::53",
    "b 0 IN AAAA 2001:500::54",
];

/// Documentation addresses (RFC 5737, RFC 3849). The last part is the DNS port.
const ADDRESS_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);
const ADDRESS_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x53);
