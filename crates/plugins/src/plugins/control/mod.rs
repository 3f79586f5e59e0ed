//! Configures the control API, which the server serves.

use core::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use config::options::{Args, DirectiveContext, Manifest, Problem, Property, Usage};
use config::setup::{ControlAddress, NamePrivacy, Part, Setup, SetupError};

use crate::shared::option_helpers::no_arguments;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "control",
    "look into the running server: status, cache, log levels",
    include_str!("README.md"),
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
        usage: Usage("privacy names=hash|names=suffix"),
        default: "",
        doc: "Hide the names that clients ask for from `portolan tail`, `portolan top` and the status page: show only their zone, \
            with a hash of the name, which is another one after each start, or with `*`.",
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
    names: NamePrivacy,
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
        (text, None) => ControlAddress::Tcp(tcp(text).ok_or_else(|| {
            args.bad(word, "`@NAME` or `/PATH` of a Unix socket, `off`, or a loopback address such as `127.0.0.1:9154`")
        })?),
    };
    if let ControlAddress::Tcp(address) = &address
        && !address.ip().is_loopback()
    {
        let problem = args.problem_at(
            word.span,
            format!("`{text}` is not a loopback address, and the control API has no authentication over TCP"),
        );
        let help = "use `127.0.0.1` and `kubectl port-forward`, or the Unix socket with `kubectl exec`; client certificates are not supported";
        return Err(Box::new(problem.with_help(help)));
    }
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

/// Refuses a combination of address and `read-only` that the server does not have.
fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let Config { listen, read_only, .. } = context.config;
    let is_tcp = matches!(listen, Listen::Address(ControlAddress::Tcp(_)));
    if is_tcp && !read_only {
        let problem = context
            .problem("a TCP address of `control` must be read-only, because everybody on this machine can connect");
        return Err(Box::new(
            problem.with_help("add `read-only` to its block: `control 127.0.0.1:9154 { read-only }`"),
        ));
    }
    if *read_only && !is_tcp {
        let message = "`read-only` is for TCP addresses; a Unix socket serves only its own user and root, who may change anything";
        return Err(context.problem_with("read-only", message));
    }
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let control = &mut setup.requests.control;
    for Config { listen, names, .. } in configs {
        if names != NamePrivacy::Shown {
            control.names = names;
        }
        match listen {
            Listen::Default => {}
            Listen::Off => control.no_default = true,
            Listen::Address(address) if !control.addresses.contains(&address) => control.addresses.push(address),
            Listen::Address(_) => {}
        }
    }
    Ok(None)
}
