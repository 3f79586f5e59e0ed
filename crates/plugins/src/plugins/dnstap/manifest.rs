//! Options of *dnstap*.

use config::options::{Args, Manifest, Problem, Property, Usage};
use engine::streams::StreamAddress;

use common_plugins::shared::log_format::Format;

pub(crate) static MANIFEST: Manifest<Config> = Manifest::new(
    "dnstap",
    "send queries and responses to a dnstap collector",
    Config::default,
    super::build,
)
.repeated()
.arguments("dnstap [listen] SOCKET [full] [WRITEBUFFER] [QUEUE]", read)
.properties(&[
    Property {
        usage: Usage("identity NAME"),
        default: "host name",
        doc: "Name of the server in each message.",
        set: |config, args| {
            config.identity = Some(args.word()?.text.clone());
            Ok(())
        },
    },
    Property {
        usage: Usage("version TEXT"),
        default: "`Portolan-VERSION`",
        doc: "Software version in each message.",
        set: |config, args| {
            config.version = Some(args.word()?.text.clone());
            Ok(())
        },
    },
    Property {
        usage: Usage("extra FORMAT"),
        default: "",
        doc: "Text for the `extra` field of each message, with the placeholders of *log*. Placeholders about the \
              response are `-` in messages about queries.",
        set: |config, args| {
            config.extra = Some(Format::read(&args.word()?.text));
            Ok(())
        },
    },
    Property {
        usage: Usage("skipverify"),
        default: "off",
        doc: "Accept any certificate of the collector.",
        set: |config, _| {
            config.skip_verify = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("tls CERT KEY [CA]"),
        default: "",
        doc: "PEM files for `listen` on `tls://`: the certificate and key of the server, and the CA certificates that \
              collectors are verified with. Without CA, collectors need no certificate.",
        set: |config, args| {
            if !config.listen {
                return Err(args.problem("`tls` requires `listen`"));
            }
            let mut next = || args.next_word().map(|word| word.text.clone());
            config.tls = next().zip(next()).map(|(certificates, key)| Files { certificates, key, authorities: next() });
            Ok(())
        },
    },
])
.check(|context| {
    let (config, is_tls) = (context.config, context.config.encrypted);
    if config.listen && is_tls && config.tls.is_none() {
        return Err(context.problem("`listen` on `tls://` requires a line `tls CERT KEY`"));
    }
    if let Some(word) = context.word_of("tls").filter(|_| !is_tls) {
        let message = "tls has no effect: connections to this address are not encrypted";
        return Err(context.warning_at(word, message, "write the address as `tls://ADDRESS`"));
    }
    Ok(())
})
.metrics(&[&super::LOST]);

/// Configuration of a `dnstap` line.
pub(crate) struct Config {
    /// True if collectors connect to this server instead of the other way round.
    pub(super) listen: bool,
    pub(super) place: StreamAddress,
    /// True if the connection uses TLS.
    pub(super) encrypted: bool,
    /// True if the DNS messages themselves are included.
    pub(super) full: bool,
    /// Size of the socket's send buffer in MiB.
    pub(super) write_buffer: usize,
    /// Size of the queue in units of 10,000 messages.
    pub(super) queue: usize,
    pub(super) identity: Option<String>,
    pub(super) version: Option<String>,
    pub(super) extra: Option<Format>,
    pub(super) skip_verify: bool,
    pub(super) tls: Option<Files>,
}

/// Names of PEM files.
pub(super) struct Files {
    pub(super) certificates: String,
    pub(super) key: String,
    pub(super) authorities: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: false,
            place: StreamAddress::Tcp(String::new()),
            encrypted: false,
            full: false,
            write_buffer: 1,
            queue: 1,
            identity: None,
            version: None,
            extra: None,
            skip_verify: false,
            tls: None,
        }
    }
}

/// Maximum WRITEBUFFER, as in CoreDNS.
const WRITE_BUFFER_MAX: usize = 1024;
/// Maximum QUEUE, as in CoreDNS.
const QUEUE_MAX: usize = 4096;

fn read(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let mut socket = args.word()?;
    if socket.text == "listen" {
        config.listen = true;
        socket = args.word()?;
    }
    let text = socket.text.as_str();
    (config.place, config.encrypted) = if let Some(address) = text.strip_prefix("tls://") {
        (StreamAddress::Tcp(address.to_owned()), true)
    } else if let Some(address) = text.strip_prefix("tcp://") {
        (StreamAddress::Tcp(address.to_owned()), false)
    } else {
        (StreamAddress::Unix(text.strip_prefix("unix://").unwrap_or(text).into()), false)
    };
    if matches!(&config.place, StreamAddress::Tcp(address) if !address.contains(':')) {
        args.warn(socket, format!("`{text}` has no port: connecting to it will fail"));
    }
    if let Some(word) = args.next_word() {
        config.full = word.text == "full";
        if !config.full {
            args.warn(word, format!("`{}` is ignored: only `full` is allowed here", word.text));
        }
    }
    if !args.rest().is_empty() {
        config.write_buffer = args.number(1..=WRITE_BUFFER_MAX)?;
    }
    if !args.rest().is_empty() {
        config.queue = args.number(1..=QUEUE_MAX)?;
    }
    if let Some(word) = args.next_word() {
        args.warn(word, format!("`{}` is ignored", word.text));
    }
    Ok(())
}
