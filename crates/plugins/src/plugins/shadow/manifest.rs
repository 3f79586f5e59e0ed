//! Options of *shadow*.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use config::options::{Args, Manifest, Problem, Property, Usage};
use engine::streams::StreamAddress;

use super::compare::Ignored;

pub(crate) static MANIFEST: Manifest<Config> = Manifest::new(
    "shadow",
    "compare the answers with those of another server",
    Config::default,
    super::build,
)
.arguments("shadow TO", |config, args| {
    config.to = server(args)?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("sample N/M"),
        default: "1/10",
        doc: "Compare N of M queries, chosen at random.",
        set: |config, args| {
            config.sample = share(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max NUMBER"),
        default: "500",
        doc: "Maximum number of queries per second to the other server, up to 10000.",
        set: |config, args| {
            config.per_second_max = args.number(1..=PER_SECOND_MAX)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("timeout DURATION"),
        default: "2s",
        doc: "Time that the other server has for its answer, up to 10s.",
        set: |config, args| {
            config.timeout = timeout(args)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("ignore PART..."),
        default: "order",
        doc: "Parts that are not compared: `ttl`, `order` (of the records in a section), `ra` (the flag). The line \
              replaces the default.",
        set: |config, args| {
            config.ignored = Ignored::default();
            config.ignored.add(args)?;
            while !args.rest().is_empty() {
                config.ignored.add(args)?;
            }
            Ok(())
        },
    },
    Property {
        usage: Usage("tolerance DURATION"),
        default: "30s",
        doc: "Maximum difference between two TTLs that count as equal. A cache lowers the TTL of a record by its age, \
              so set it to the duration in *cache*.",
        set: |config, args| {
            config.tolerance = args.duration()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("report DURATION"),
        default: "1m",
        doc: "Interval of the summary in the log, which is written if answers differ or are missing. `0s` switches it \
              off.",
        set: |config, args| {
            config.report = args.duration()?;
            Ok(())
        },
    },
    Property {
        usage: Usage("dnstap ENDPOINT"),
        default: "",
        doc: "Receive the answers of the other server as dnstap messages at this address, `tcp://HOST:PORT` or the \
              path of a Unix socket, instead of sending queries to it.",
        set: |config, args| {
            config.dnstap = Some(endpoint(args)?);
            Ok(())
        },
    },
    Property {
        usage: Usage("to-file FILE"),
        default: "",
        doc: "Append one line of JSON per difference to this file, up to 64 MiB.",
        set: |config, args| {
            config.file = Some(args.word()?.text.clone());
            Ok(())
        },
    },
])
.metrics(&[&super::results::COMPARED]);

/// Maximum of `max`: more would be a load test of the other server.
const PER_SECOND_MAX: u32 = 10_000;
/// Maximum of `timeout`. No client waits longer.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// Maximum of M in `sample N/M`.
const SAMPLE_MAX: usize = 1_000_000;
/// Port of DNS servers.
const DNS_PORT: u16 = 53;

/// Options of a `shadow` line.
#[derive(Debug)]
pub(crate) struct Config {
    /// Other server.
    pub(super) to: SocketAddr,
    /// Compares the first number of queries of the second.
    pub(super) sample: (usize, usize),
    pub(super) per_second_max: u32,
    pub(super) timeout: Duration,
    pub(super) ignored: Ignored,
    pub(super) tolerance: Duration,
    pub(super) report: Duration,
    /// Address for the dnstap messages of the other server.
    pub(super) dnstap: Option<StreamAddress>,
    pub(super) file: Option<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            to: SocketAddr::from(([0, 0, 0, 0], DNS_PORT)),
            sample: (1, 10),
            per_second_max: 500,
            timeout: Duration::from_secs(2),
            ignored: Ignored { order: true, ..Ignored::default() },
            tolerance: Duration::from_secs(30),
            report: Duration::from_secs(60),
            dnstap: None,
            file: None,
        }
    }
}

impl Ignored {
    fn add(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let part = args.choice::<fn(&mut Ignored) -> &mut bool>(&[
            ("ttl", |ignored| &mut ignored.ttl),
            ("order", |ignored| &mut ignored.order),
            ("ra", |ignored| &mut ignored.ra),
        ])?;
        *part(self) = true;
        Ok(())
    }
}

/// Takes the address of a server.
fn server(args: &mut Args<'_>) -> Result<SocketAddr, Problem> {
    let word = args.word()?;
    let text = word.text.strip_prefix("dns://").unwrap_or(&word.text);
    let bare: Option<IpAddr> = text.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let address = bare.map(|ip| SocketAddr::new(ip, DNS_PORT)).or_else(|| text.parse().ok());
    let usable = address.filter(|address| !address.ip().is_unspecified() && address.port() != 0);
    usable.ok_or_else(|| args.bad(word, "the address of a DNS server, `IP` or `IP:PORT`"))
}

/// Takes the address of a listener for streams.
fn endpoint(args: &mut Args<'_>) -> Result<StreamAddress, Problem> {
    let word = args.word()?;
    let Some(address) = word.text.strip_prefix("tcp://") else {
        let path = word.text.strip_prefix("unix://").unwrap_or(&word.text);
        return Ok(StreamAddress::Unix(path.into()));
    };
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { Ok(StreamAddress::Tcp(address.to_owned())) } else { Err(args.bad(word, "an address with a port")) }
}

/// Takes a time limit.
fn timeout(args: &mut Args<'_>) -> Result<Duration, Problem> {
    let word = args.rest().first();
    let timeout = args.duration_above_zero()?;
    match word {
        Some(word) if timeout > TIMEOUT_MAX => Err(args.bad(word, "a duration of at most 10s")),
        _ => Ok(timeout),
    }
}

/// Takes a share such as `1/10`.
fn share(args: &mut Args<'_>) -> Result<(usize, usize), Problem> {
    let word = args.word()?;
    let parts = word.text.split_once('/').and_then(|(part, whole)| Some((part.parse().ok()?, whole.parse().ok()?)));
    let valid = parts.filter(|(part, whole)| (1..=SAMPLE_MAX).contains(whole) && (1..=*whole).contains(part));
    valid.ok_or_else(|| args.bad(word, "a share such as `1/10`, from `1/1000000` to `1/1`"))
}
