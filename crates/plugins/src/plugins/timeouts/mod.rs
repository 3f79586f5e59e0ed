//! Timeouts for clients on stream transports.

use core::time::Duration;

use config::options::{Args, DirectiveContext, Manifest, Problem, Property, Usage};
use config::setup::{Part, Setup, SetupError, Timeouts};
use gotext::parse_duration;

pub static MANIFEST: Manifest<Config> =
    Manifest::new("timeouts", "set timeouts for TCP, TLS, HTTPS, QUIC and gRPC connections", Config::default, build)
        .without_handler()
        .repeated()
        .properties(&[
            Property {
                usage: Usage("read DURATION"),
                default: "3s",
                doc: "Time for a query to arrive completely after its first byte.",
                set: |config, args| config.take(|timeouts| &mut timeouts.read, args),
            },
            Property {
                usage: Usage("write DURATION"),
                default: "5s",
                doc: "Time for a client to accept a response.",
                set: |config, args| config.take(|timeouts| &mut timeouts.write, args),
            },
            Property {
                usage: Usage("idle DURATION"),
                default: "10s",
                doc: "Time after which a connection without a query is closed. The default for gRPC is 5m.",
                set: |config, args| config.take(|timeouts| &mut timeouts.idle, args),
            },
            Property {
                usage: Usage("maxtcpqueries NUMBER"),
                default: "-1",
                doc: "Number of queries after which a connection is closed; -1 for no limit.",
                set: |config, args| {
                    let word = args.word()?;
                    let number: Option<i64> = word.text.parse().ok().filter(|number| *number == -1 || *number > 0);
                    let number = number.ok_or_else(|| args.bad(word, "a number above 0, or -1 for no limit"))?;
                    config.timeouts.queries_max = u32::try_from(number).ok();
                    config.says_something = true;
                    Ok(())
                },
            },
        ])
        .check(check)
        .settings(|config, settings| {
            let Timeouts { read, write, idle, queries_max } = config.timeouts;
            let known = settings.listening.timeouts;
            settings.listening.timeouts = Timeouts {
                read: read.or(known.read),
                write: write.or(known.write),
                idle: idle.or(known.idle),
                queries_max: queries_max.or(known.queries_max),
            };
        });

/// Bounds of a timeout, as in CoreDNS.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Default)]
pub struct Config {
    timeouts: Timeouts,
    says_something: bool,
}

impl Config {
    /// Parses a duration. A number without a unit is in seconds.
    fn take(&mut self, place: fn(&mut Timeouts) -> &mut Option<Duration>, args: &mut Args<'_>) -> Result<(), Problem> {
        let word = args.word()?;
        let seconds = word.text.parse().ok().map(Duration::from_secs);
        let span = seconds.or_else(|| parse_duration(&word.text).ok()).filter(|span| (LEAST..=MOST).contains(span));
        *place(&mut self.timeouts) = Some(span.ok_or_else(|| args.bad(word, "a time from `1s` to `24h`"))?);
        self.says_something = true;
        Ok(())
    }
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    if context.config.says_something {
        return Ok(());
    }
    Err(context.problem("`timeouts` needs a block with at least one timeout"))
}

fn build(_: Vec<Config>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
