//! Options of `trace`.

use core::time::Duration;

use config::options::{Args, Manifest, Problem, Property, Usage};

pub(crate) static MANIFEST: Manifest<Config> = Manifest::new(
    "trace",
    "send traces of queries to a collector",
    Config::default,
    super::build,
)
.repeated()
.arguments("trace [ENDPOINT-TYPE] [ENDPOINT]", read)
.properties(&[
    Property {
        usage: Usage("every N"),
        default: "1",
        doc: "Trace one query in N; 0 disables tracing.",
        set: |config, args| {
            config.every = args.number(0..)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("service NAME"),
        default: "coredns",
        doc: "Service name in the spans.",
        set: |config, args| {
            config.service = args.word()?.text.clone();
            Ok(())
        },
    },
    Property {
        usage: Usage("client_server [true|false]"),
        default: "false",
        doc: "Accepted for compatibility with CoreDNS. DNS queries carry no span that could be shared.",
        set: |_, args| {
            let Some(word) = args.next_word() else { return Ok(()) };
            let known = ["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"];
            if known.contains(&word.text.as_str()) { Ok(()) } else { Err(args.bad(word, "`true` or `false`")) }
        },
    },
    Property {
        usage: Usage("datadog_analytics_rate RATE"),
        default: "",
        doc: "Accepted for compatibility with CoreDNS. It applies only to Datadog's own tracer.",
        set: |_, args| {
            let rate: f64 = args.parse("a number from 0 to 1")?;
            if (0.0..=1.0).contains(&rate) { Ok(()) } else { Err(args.problem("the rate must be from 0 to 1")) }
        },
    },
    Property {
        usage: Usage("zipkin_max_backlog_size N"),
        default: "1000",
        doc: "Approximate number of spans, 1 to 1000000, that can wait for the collector. If more are waiting, spans \
              are lost and counted.",
        set: |config, args| {
            config.backlog = args.number(1..=BACKLOG_MAX)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("zipkin_max_batch_size N"),
        default: "100",
        doc: "Approximate number of waiting spans that are sent at once, before the interval ends.",
        set: |config, args| {
            config.batch = args.number(1..=BACKLOG_MAX)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("zipkin_max_batch_interval DURATION"),
        default: "1s",
        doc: "Maximum time that spans wait before they are sent.",
        set: |config, args| {
            config.interval = args.duration_above_zero()?;
            Ok(())
        },
    },
])
.metrics(&[&super::LOST]);

/// Maximum of `zipkin_max_backlog_size`: half a gigabyte of spans.
const BACKLOG_MAX: usize = 1_000_000;

/// Parsed `trace` line.
pub(crate) struct Config {
    pub(super) form: Form,
    pub(super) endpoint: Endpoint,
    pub(super) every: u64,
    pub(super) service: String,
    pub(super) backlog: usize,
    pub(super) batch: usize,
    pub(super) interval: Duration,
}

/// Format of the spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Zipkin's JSON, version 2.
    Zipkin,
    /// OTLP's JSON (OpenTelemetry).
    Otlp,
}

/// URL of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) encrypted: bool,
    /// `HOST:PORT`.
    pub(super) address: String,
    pub(super) path: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            form: Form::Zipkin,
            endpoint: Endpoint::read("localhost:9411", Form::Zipkin),
            every: 1,
            service: "coredns".to_owned(),
            backlog: 1000,
            batch: 100,
            interval: Duration::from_secs(1),
        }
    }
}

/// Endpoint types; `None` for those that this build does not support.
const FORMS: [(&str, Option<Form>); 3] =
    [("zipkin", Some(Form::Zipkin)), ("otlp", Some(Form::Otlp)), ("datadog", None)];

fn read(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    if args.rest().len() == 2 {
        match args.choice(&FORMS)? {
            Some(form) => config.form = form,
            None => args.line_not_here(
                "this build does not support Datadog's own protocol",
                "the Datadog agent accepts OTLP: write `trace otlp HOST:4318`",
            ),
        }
    }
    let Some(word) = args.next_word() else { return Ok(()) };
    if FORMS.iter().any(|(name, _)| *name == word.text) {
        args.warn(word, format!("`{}` is taken as the ENDPOINT; an ENDPOINT is missing after the type", word.text));
    }
    config.endpoint = Endpoint::read(&word.text, config.form);
    Ok(())
}

impl Endpoint {
    /// Parses a URL, whose scheme may be in upper case, or `HOST:PORT`, to which the usual path is added.
    fn read(text: &str, form: Form) -> Endpoint {
        let usual = if form == Form::Otlp { "/v1/traces" } else { "/api/v2/spans" };
        let (encrypted, rest, has_scheme) = match (after_scheme(text, "http://"), after_scheme(text, "https://")) {
            (None, None) => (false, text, false),
            (Some(rest), _) => (false, rest, true),
            (None, Some(rest)) => (true, rest, true),
        };
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = match (path, form) {
            _ if !has_scheme => [path.trim_end_matches('/'), usual].concat(),
            ("", Form::Otlp) => usual.to_owned(),
            ("", _) => "/".to_owned(),
            (path, _) => path.to_owned(),
        };
        Endpoint { encrypted, address: with_port(address, if encrypted { 443 } else { 80 }), path }
    }

    /// Host name that the collector's certificate must have.
    pub(super) fn host(&self) -> &str {
        let host = self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl core::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "http{}://{}{}", if self.encrypted { "s" } else { "" }, self.address, self.path)
    }
}

/// Returns what follows a scheme in a URL.
fn after_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

fn with_port(address: &str, port: u16) -> String {
    let last = address.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    if last.is_some() { address.to_owned() } else { format!("{address}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_endpoints() {
        for (text, form, url, host) in [
            ("host:9411", Form::Zipkin, "http://host:9411/api/v2/spans", "host"),
            ("host", Form::Zipkin, "http://host:80/api/v2/spans", "host"),
            ("host:4318", Form::Otlp, "http://host:4318/v1/traces", "host"),
            ("http://host:9411/x?y", Form::Zipkin, "http://host:9411/x?y", "host"),
            ("https://[2001:db8::1]/x", Form::Zipkin, "https://[2001:db8::1]:443/x", "2001:db8::1"),
            ("https://host", Form::Otlp, "https://host:443/v1/traces", "host"),
            ("HTTP://host:9411/x", Form::Zipkin, "http://host:9411/x", "host"),
            ("Https://host", Form::Otlp, "https://host:443/v1/traces", "host"),
            ("httpbin.tracing:9411", Form::Zipkin, "http://httpbin.tracing:9411/api/v2/spans", "httpbin.tracing"),
            ("127.0.0.1:9411/http", Form::Zipkin, "http://127.0.0.1:9411/http/api/v2/spans", "127.0.0.1"),
            ("host:4318/", Form::Otlp, "http://host:4318/v1/traces", "host"),
        ] {
            let endpoint = Endpoint::read(text, form);
            assert_eq!((endpoint.to_string().as_str(), endpoint.host()), (url, host));
        }
    }
}
