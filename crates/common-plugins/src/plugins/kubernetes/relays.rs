//! Options of the relays that are asked before the API server.

use std::path::PathBuf;

use cluster::Relays;
use config::options::{Args, DirectiveContext, Problem, Property, Usage};

/// Scheme of relays: a false relay could redirect every name.
const SCHEME: &str = "https://";

/// Options of relays, as written.
#[derive(Debug, Default)]
pub(super) struct Options {
    urls: Vec<String>,
    /// CA certificates, and the name in the certificate of a relay.
    tls: Option<(String, Option<String>)>,
    token: Option<String>,
    only: bool,
}

/// A configuration with these options.
pub(super) trait HasRelays {
    /// Returns the options.
    fn relays(&mut self) -> &mut Options;
}

/// Property `relays`.
pub(super) const fn urls<C: HasRelays>() -> Property<C> {
    Property {
        usage: Usage("relays URL..."),
        default: "off",
        doc: "URLs of relays of the API server (`portolan relay`), `https://HOST:PORT`, which are watched in its \
              place. Several relays may be behind a URL. Needs `relay_tls` and `relay_token`. The API server is \
              asked after 30 to 90 seconds without a relay, from the last position, and never with `relay_only`. \
              Not in CoreDNS.",
        set: add_urls,
    }
}

fn add_urls<C: HasRelays>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    let urls = args.take_rest();
    if let Some(word) = urls.iter().find(|word| !word.text.starts_with(SCHEME)) {
        return Err(args.bad(word, "a URL of the form `https://HOST:PORT`"));
    }
    config.relays().urls.extend(urls.iter().map(|word| word.text.clone()));
    Ok(())
}

/// Property `relay_tls`.
pub(super) const fn tls<C: HasRelays>() -> Property<C> {
    Property {
        usage: Usage("relay_tls CACERT [NAME]"),
        default: "",
        doc: "PEM file with the CA certificates that alone are trusted for relays, read again when it changes, and the \
              name that is verified if it is not the host of the URL. Not in CoreDNS.",
        set: set_tls,
    }
}

fn set_tls<C: HasRelays>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    let authority = args.word()?.text.clone();
    config.relays().tls = Some((authority, args.next_word().map(|word| word.text.clone())));
    Ok(())
}

/// Property `relay_token`.
pub(super) const fn token<C: HasRelays>() -> Property<C> {
    Property {
        usage: Usage("relay_token FILE"),
        default: "",
        doc: "File with the token for relays, a projected ServiceAccount token, read again when it changes. Not in \
              CoreDNS.",
        set: set_token,
    }
}

fn set_token<C: HasRelays>(config: &mut C, args: &mut Args<'_>) -> Result<(), Problem> {
    config.relays().token = Some(args.word()?.text.clone());
    Ok(())
}

/// Property `relay_only`.
pub(super) const fn only<C: HasRelays>() -> Property<C> {
    Property {
        usage: Usage("relay_only"),
        default: "off",
        doc: "Never ask the API server, also if no relay answers. Not in CoreDNS.",
        set: set_only,
    }
}

fn set_only<C: HasRelays>(config: &mut C, _: &mut Args<'_>) -> Result<(), Problem> {
    config.relays().only = true;
    Ok(())
}

impl Options {
    /// Checks that the options fit each other.
    pub(super) fn check<C>(&self, context: &DirectiveContext<'_, C>) -> Result<(), Problem> {
        let has_others = self.tls.is_some() || self.token.is_some() || self.only;
        match (self.urls.is_empty(), &self.tls, &self.token) {
            (true, ..) if has_others => {
                let written = ["relay_tls", "relay_token", "relay_only"].into_iter();
                let first = written.clone().find(|name| context.word_of(name).is_some()).unwrap_or("relay_only");
                Err(context.problem_with(first, format!("{first} needs relays")))
            }
            (false, None, _) => Err(context.problem_with("relays", "relays needs relay_tls")),
            (false, _, None) => Err(context.problem_with("relays", "relays needs relay_token")),
            (false, ..) if context.word_of("manifests").is_some() => {
                Err(context.problem_with("relays", "relays cannot be combined with manifests"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the relays, if there are any.
    pub(super) fn relays(&self, path: impl Fn(&str) -> PathBuf) -> Option<Relays> {
        let ((authority, server_name), token) = self.tls.as_ref().zip(self.token.as_ref())?;
        let (urls, only) = (self.urls.clone(), self.only);
        let relays =
            Relays { urls, authority: path(authority), token: path(token), server_name: server_name.clone(), only };
        Some(relays).filter(|relays| !relays.urls.is_empty())
    }
}
