//! Sets and clears header flags of queries and responses.

use config::options::{Args, DirectiveContext, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::Flags;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "header",
    "set or clear header flags of queries and responses",
    Config::default,
    build,
)
.repeated()
.properties(&[
    Property {
        usage: Usage("query set|clear FLAG..."),
        default: "",
        doc: "Set or clear flags of the query before the next plugins see it. The response still has the RD flag of \
              the client's query.",
        set: |config, args| read_change(&mut config.query, args),
    },
    Property {
        usage: Usage("response set|clear FLAG..."),
        default: "",
        doc: "Set or clear flags of the response.",
        set: |config, args| read_change(&mut config.response, args),
    },
])
.check(check)
.role(|_| Role::new(Effect::OnAnswers, &[]));

/// Flags with their bits in the header (RFC 1035 §4.1.1).
const FLAGS: [(&str, u16); 3] = [("aa", 0x0400), ("ra", 0x0080), ("rd", 0x0100)];
const RECURSION_DESIRED: u16 = 0x0100;

#[derive(Default)]
pub struct Config {
    query: Change,
    response: Change,
}

/// Bits to set and bits to clear.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Change {
    set: u16,
    clear: u16,
}

impl Change {
    const fn apply(self, flags: Flags) -> Flags {
        Flags(flags.0 & !self.clear | self.set)
    }

    /// Combines this change with a later one, which takes precedence.
    const fn and(self, next: Change) -> Change {
        Change { set: self.set & !next.clear | next.set, clear: self.clear & !next.set | next.clear }
    }
}

fn read_change(change: &mut Change, args: &mut Args<'_>) -> Result<(), Problem> {
    let sets = args.choice(&[("set", true), ("clear", false)])?;
    while let Some(word) = args.next_word() {
        let known = FLAGS.iter().find(|(name, _)| word.text.eq_ignore_ascii_case(name));
        let (_, bit) = known.ok_or_else(|| args.bad(word, "one of the flags `aa`, `ra`, `rd`"))?;
        let one = if sets { Change { set: *bit, clear: 0 } } else { Change { set: 0, clear: *bit } };
        *change = change.and(one);
    }
    Ok(())
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let nothing = Change::default();
    if context.config.query == nothing && context.config.response == nothing {
        return Err(context.problem("`header` needs a block with `query` or `response`"));
    }
    Ok(())
}

fn build(configs: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let all = configs.into_iter().fold(Header::default(), |all, config| Header {
        query: all.query.and(config.query),
        response: all.response.and(config.response),
    });
    let down = all.query != Change::default();
    Ok(Some(Part::new(all, Hooks { down, ..Hooks::UP }.with_updates())))
}

#[derive(Default)]
struct Header {
    query: Change,
    response: Change,
}

impl Plugin for Header {
    fn on_query(&self, query: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        let flags = &mut query.request.header.flags;
        let before = *flags;
        *flags = self.query.apply(before);
        query.set_note(u64::from(before.0));
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let flags = &mut response.message.header.flags;
        if self.query != Change::default() {
            let before = Flags(u16::try_from(query.note()).unwrap_or_default());
            query.request.header.flags = before;
            *flags = Flags(flags.0 & !RECURSION_DESIRED | before.0 & RECURSION_DESIRED);
        }
        *flags = self.response.apply(*flags);
        Verdict::Pass
    }
}
