//! Says how long clients on streams may take.

use core::time::Duration;

use engine::options::{Args, Manifest, Problem, Property, Usage, Writing, duration};
use engine::setup::{Part, Setup, SetupError, StreamLimits};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "timeouts",
    "says how long clients on streams may take",
    include_str!("README.md"),
    Config::default,
    build,
)
.repeated()
.properties(&[
    Property {
        usage: Usage("read DURATION"),
        default: "3s",
        doc: "How long a query may take to arrive once its first octet has.",
        set: |config, args| take(&mut config.read, args),
    },
    Property {
        usage: Usage("write DURATION"),
        default: "5s",
        doc: "How long a client may take to accept an answer.",
        set: |config, args| take(&mut config.write, args),
    },
    Property {
        usage: Usage("idle DURATION"),
        default: "10s",
        doc: "How long a connection may be silent.",
        set: |config, args| take(&mut config.idle, args),
    },
    Property {
        usage: Usage("maxtcpqueries NUMBER"),
        default: "-1",
        doc: "Queries on one connection, which is closed after them; -1 for any number.",
        set: |config, args| {
            let word = args.word()?;
            let number: Option<i64> = word.text.parse().ok().filter(|number| *number == -1 || *number > 0);
            let number = number.ok_or_else(|| args.bad(word, "a number above 0, or -1 for no limit"))?;
            config.queries_max = Some(u32::try_from(number).ok());
            Ok(())
        },
    },
])
.check(check)
.settings(|config, settings| {
    let known = settings.streams;
    settings.streams = StreamLimits {
        read: config.read.unwrap_or(known.read),
        write: config.write.unwrap_or(known.write),
        idle: config.idle.unwrap_or(known.idle),
        queries_max: config.queries_max.unwrap_or(known.queries_max),
    };
});

/// The shortest and the longest time, as in CoreDNS.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Default)]
pub struct Config {
    read: Option<Duration>,
    write: Option<Duration>,
    idle: Option<Duration>,
    queries_max: Option<Option<u32>>,
}

/// Takes a duration; a bare number is one of seconds.
fn take(time: &mut Option<Duration>, args: &mut Args<'_>) -> Result<(), Problem> {
    let word = args.word()?;
    let seconds = word.text.parse().ok().map(Duration::from_secs);
    let span = seconds.or_else(|| duration(&word.text).ok()).filter(|span| (LEAST..=MOST).contains(span));
    *time = Some(span.ok_or_else(|| args.bad(word, "a time from `1s` to `24h`"))?);
    Ok(())
}

fn check(writing: &Writing<'_, Config>) -> Result<(), Problem> {
    let Config { read, write, idle, queries_max } = writing.config;
    if read.or(*write).or(*idle).is_none() && queries_max.is_none() {
        return Err(writing.problem("`timeouts` wants a block that says at least one of them"));
    }
    Ok(())
}

fn build(_: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
