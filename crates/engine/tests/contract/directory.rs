//! Reads its records from an external store, as *etcd* does: a step that waits, and then inspects the reply.

use core::time::Duration;

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{
    Hooks, Io, LocalFuture, Plugin, Query, Resolved, Response, Subquery, SubqueryTarget, Verdict, Worker, Zones,
};
use testkit::Record;
use wire::{Header, MessageBuf, Rcode, Reply, Section, Type};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("directory", "reads records from an external store", Config::default, build)
        .arguments("directory [fallthrough]", |config, args| {
            config.falls_through = args.next_word().is_some();
            Ok(())
        })
        .other_lines("OWNER [WORDS...]", |config, args| {
            let words: Vec<&str> =
                core::iter::once(args.name()).chain(args.take_rest()).map(|word| word.text.as_str()).collect();
            config.records.push(words.join(" ").parse().map_err(|_| args.problem("no record"))?);
            Ok(())
        });

#[derive(Default)]
pub struct Config {
    falls_through: bool,
    records: Vec<Record>,
}

fn build(configs: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(Config { falls_through, records }) = configs.into_iter().next() else { return Ok(None) };
    let fallthrough = if falls_through { Zones::all() } else { Zones::default() };
    Ok(Some(Part { fallthrough, ..Part::new(Directory { records }, Hooks::DOWN) }))
}

/// Latency of the store.
const DELAY: Duration = Duration::from_millis(10);

struct Directory {
    records: Vec<Record>,
}

impl Plugin for Directory {
    fn on_query(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Wait
    }

    fn resolve<'a>(&'a self, query: &'a Query, io: &'a dyn Io) -> LocalFuture<'a, Resolved> {
        Box::pin(async move {
            io.sleep_until(io.now() + DELAY).await;
            Reply::parse(self.reply(query)).map_or(Resolved::Pass, Resolved::Reply)
        })
    }

    fn on_resolved(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        response.set_authoritative(true);
        if response.rcode() == Rcode::NXDOMAIN {
            return Verdict::Missing;
        }
        match response.message.section(Section::Answer).find(|mark| mark.rtype == Type::CNAME) {
            Some(mark) if query.qtype != Type::CNAME => {
                let name = response.message.name_in(mark, 0).unwrap_or_default();
                Verdict::Subquery(Box::new(Subquery { name, qtype: query.qtype, target: SubqueryTarget::Top }))
            }
            _ => Verdict::Done,
        }
    }

    fn on_subresponse(&self, _: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        response.append_answers(sub);
        Verdict::Done
    }
}

impl Directory {
    fn reply(&self, query: &Query) -> Vec<u8> {
        let mut message = MessageBuf::new();
        message.start(Header::default(), Some((query.name(), query.qtype, query.qclass)));
        let owned: Vec<_> = self.records.iter().filter(|record| record.owner.as_ref() == query.key()).collect();
        let fits = |record: &&&Record| [query.qtype, Type::CNAME].contains(&record.rtype);
        owned.iter().filter(fits).for_each(|record| record.push_to(&mut message, Section::Answer));
        if owned.is_empty() {
            message.header.flags = message.header.flags.with_rcode(Rcode::NXDOMAIN);
        }
        message.finish(None, core::iter::empty()).to_vec()
    }
}
