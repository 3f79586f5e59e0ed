//! Configures the control API, which the server serves.

use core::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use config::options::{Args, DirectiveContext, Manifest, Problem, Property, Usage};
use config::setup::{ControlAddress, ControlListener, NamePrivacy, Part, Setup, SetupError};
use engine::tls::ClientCertificates;

use common_plugins::shared::option_helpers::no_arguments;
use common_plugins::shared::server_certificates::Certificates;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "control",
    "look into the running server: status, cache, log levels",
    Config::default,
    build,
)
.without_handler()
.repeated()
.arguments("control [ADDRESS]", |config, args| {
    config.listen = read(args)?;
    Ok(())
})
.properties(&[
    Property {
        usage: Usage("read-only"),
        default: "off",
        doc: "Allow only requests that change nothing. Required for a TCP address.",
        set: |config, args| {
            config.read_only = true;
            no_arguments(config, args)
        },
    },
    Property {
        usage: Usage("tls CERTIFICATE KEY CA"),
        default: "off",
        doc: "Encrypt a TCP address, and serve only clients with a certificate that CA has signed. The files are in \
              PEM format, and are read again when they change. Required for an address that is not loopback.",
        set: |config, args| {
            let files = [args.word()?, args.word()?, args.word()?];
            let [certificate, key, authorities] = files.map(|word| word.text.clone());
            config.tls = Some(TlsFiles { certificate, key, authorities });
            Ok(())
        },
    },
    Property {
        usage: Usage("privacy names=hash|names=suffix"),
        default: "",
        doc: "Hide the names that clients ask for from `portolan tail`, `top`, `requests` and `shadow report`, from \
              the status page and from the waiting queries in a report: show only their zone, with a hash of the \
              name, which is another one after each start, or with `*`. Applies to all listeners.",
        set: |config, args| {
            let word = args.word()?;
            config.names = match word.text.as_str() {
                "names=hash" => NamePrivacy::Hashed,
                "names=suffix" => NamePrivacy::Suffix,
                _ => return Err(args.bad(word, "`names=hash` or `names=suffix`")),
            };
            Ok(())
        },
    },
])
.check(check);

/// Maximum length of a Unix socket's name: `sun_path` of Linux, without the first byte of an abstract name and the last
/// of a path.
const NAME_MAX: usize = 107;

#[derive(Default)]
pub struct Config {
    listen: Listen,
    read_only: bool,
    tls: Option<TlsFiles>,
    names: NamePrivacy,
}

/// Names of PEM files.
struct TlsFiles {
    certificate: String,
    key: String,
    authorities: String,
}

impl TlsFiles {
    fn certificates(self, setup: &Setup<'_>) -> Certificates {
        Certificates {
            certificate: setup.path(&self.certificate),
            key: setup.path(&self.key),
            authorities: Some(setup.path(&self.authorities)),
            clients: ClientCertificates::Required,
            key_log: None,
        }
    }
}

/// Argument of the directive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Listen {
    #[default]
    Default,
    Off,
    Address(ControlAddress),
}

fn read(args: &mut Args<'_>) -> Result<Listen, Problem> {
    let Some(word) = args.next_word() else { return Ok(Listen::Default) };
    let text = word.text.as_str();
    let name = text.strip_prefix('@');
    if name.unwrap_or(text).len() > NAME_MAX {
        return Err(args.problem_at(word.span, format!("the socket name is too long; the maximum is {NAME_MAX} bytes")));
    }
    let address = match (text, name) {
        ("off", _) => return Ok(Listen::Off),
        (_, Some("")) => return Err(args.bad(word, "a name after `@`")),
        (_, Some(name)) => ControlAddress::Abstract(name.to_owned()),
        (path, None) if path.starts_with('/') => ControlAddress::Path(PathBuf::from(path)),
        (text, None) => {
            let address = tcp(text).ok_or_else(|| {
                args.bad(word, "`@NAME` or `/PATH` of a Unix socket, `off`, or an address such as `127.0.0.1:9154`")
            })?;
            ControlAddress::Tcp(ControlListener { address, tls: None })
        }
    };
    Ok(Listen::Address(address))
}

/// Parses an address with a port; `localhost` is 127.0.0.1.
fn tcp(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    match host {
        "localhost" => Some(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port.parse().ok()?)),
        "" => Some(SocketAddr::new(IpAddr::from([0; 8]), port.parse().ok()?)),
        _ => text.parse().ok(),
    }
}

/// Refuses a combination of address and properties that the server does not have.
fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let Config { listen, read_only, tls, .. } = context.config;
    let Listen::Address(ControlAddress::Tcp(tcp)) = listen else {
        if *read_only {
            let message = "`read-only` is for TCP addresses; a Unix socket serves only its own user and root, who may \
                           change anything";
            return Err(context.problem_with("read-only", message));
        }
        if tls.is_some() {
            let message = "`tls` is for TCP addresses; a Unix socket serves only its own user and root";
            return Err(context.problem_with("tls", message));
        }
        return Ok(());
    };
    if !tcp.address.ip().is_loopback() && tls.is_none() {
        let message = format!("`{}` is not a loopback address, and without `tls` everybody could connect", tcp.address);
        let help = "add `tls CERTIFICATE KEY CA` to its block, or use `127.0.0.1` and `kubectl port-forward`, or the \
                    Unix socket with `kubectl exec`";
        return Err(context.problem_at_argument(message, help));
    }
    if !read_only {
        let message = "a TCP address of `control` must be read-only: only the Unix socket knows its user";
        let help = "add `read-only` to its block: `control 127.0.0.1:9154 { read-only }`";
        return Err(Box::new(context.problem(message).with_help(help)));
    }
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    setup.for_each_line(configs, request);
    Ok(None)
}

fn request(Config { listen, tls, names, .. }: Config, setup: &mut Setup<'_>) -> Result<(), SetupError> {
    if names != NamePrivacy::Shown {
        setup.requests.control.names = names;
    }
    let address = match listen {
        Listen::Default => return Ok(()),
        Listen::Off => {
            setup.requests.control.no_default = true;
            return Ok(());
        }
        Listen::Address(ControlAddress::Tcp(tcp)) => {
            let tls = tls.map(|files| files.certificates(setup).serve(MANIFEST.name, setup));
            let tls = tls.transpose().map_err(SetupError::from_error)?;
            ControlAddress::Tcp(ControlListener { tls, ..tcp })
        }
        Listen::Address(address) => address,
    };
    let known = &mut setup.requests.control.addresses;
    let is_encrypted = |address: &ControlAddress| matches!(address, ControlAddress::Tcp(tcp) if tcp.tls.is_some());
    match known.iter().find(|known| **known == address) {
        None => known.push(address),
        Some(other) if is_encrypted(other) || is_encrypted(&address) => {
            let message = format!("{address} is listed twice, with its own `tls` each; keep one of them");
            return Err(SetupError::new(message));
        }
        Some(_) => {}
    }
    Ok(())
}
