//! The certificates of the server block's `tls://` and `grpc://` listeners.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use engine::options::{Args, Manifest, Problem, Property, Usage};
use engine::setup::{Files, Inspection, Part, Setup, SetupError, Stamp};
use engine::tls::{ClientCertificates, Identity, ServerTls, TlsMaker, TlsServer};

/// How often the files are looked at: a renewed certificate is shown a minute later.
const EVERY: Duration = Duration::from_secs(60);

/// What a `tls` line says.
#[derive(Default)]
pub struct Config {
    certificate: String,
    key: String,
    authorities: Option<String>,
    clients: Option<Clients>,
    /// What this build does not do.
    missing: Option<&'static str>,
}

/// What `client_auth` says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clients {
    NoCert,
    Request,
    Require,
    VerifyIfGiven,
    RequireAndVerify,
}

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "tls",
    "the certificates of DNS over TLS",
    include_str!("README.md"),
    Config::default,
    build,
)
.arguments("tls CERT KEY [CA]", read_files)
.properties(&[
    Property {
        usage: Usage("client_auth nocert|request|require|verify_if_given|require_and_verify"),
        default: "nocert",
        doc: "Whether clients show certificates, and whether the authorities in CA (or the system's) must know them. \
              `request` asks for nothing here, since nothing would come of it.",
        set: |config, args| {
            config.clients = Some(args.choice(&[
                ("nocert", Clients::NoCert),
                ("request", Clients::Request),
                ("require", Clients::Require),
                ("verify_if_given", Clients::VerifyIfGiven),
                ("require_and_verify", Clients::RequireAndVerify),
            ])?);
            Ok(())
        },
    },
    Property {
        usage: Usage("keylog FILE"),
        default: "",
        doc: "Not in this build: writing down the keys of connections.",
        set: |config, args| {
            args.word()?;
            config.missing = Some("this build does not write down the keys of connections");
            Ok(())
        },
    },
]);

fn read_files(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let certificate = args.word()?;
    if certificate.text == "acme" {
        args.take_rest();
        config.missing = Some("this build does not obtain certificates by ACME");
        return Ok(());
    }
    config.certificate = certificate.text.clone();
    config.key = args.word()?.text.clone();
    config.authorities = args.next_word().map(|word| word.text.clone());
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    if let Some(missing) = config.missing {
        return Err(SetupError::new(missing));
    }
    let greets = |label: &String| ["tls://", "grpc://"].iter().any(|scheme| label.starts_with(scheme));
    let labels: Vec<String> = setup.block.sites.iter().map(|site| site.server.clone()).filter(greets).collect();
    let sources = Sources::new(&config, setup)?;
    let wanted = sources.read(setup.files).map_err(SetupError::new)?;
    let maker: Option<Arc<dyn TlsMaker>> = setup.process.find();
    let maker = maker.ok_or_else(|| SetupError::new("there is no TLS here"))?;
    let server = maker.server(&wanted).map_err(|error| SetupError::new(format!("{}: {error}", config.certificate)))?;
    for label in labels {
        if setup.needs.tls.iter().any(|(known, _)| *known == label) {
            return Err(SetupError::new(format!("TLS already configured for this server instance: {label}")));
        }
        setup.needs.tls.push((label, Arc::clone(&server)));
    }
    setup.needs.inspections.push(renewal(sources, server, setup.files));
    Ok(None)
}

/// The files, and what is asked of clients.
struct Sources {
    certificate: PathBuf,
    key: PathBuf,
    authorities: Option<PathBuf>,
    clients: ClientCertificates,
}

impl Sources {
    fn new(config: &Config, setup: &Setup<'_>) -> Result<Sources, SetupError> {
        let clients = match config.clients {
            None | Some(Clients::NoCert | Clients::Request) => ClientCertificates::Unasked,
            Some(Clients::VerifyIfGiven) => ClientCertificates::Verified,
            Some(Clients::RequireAndVerify) => ClientCertificates::Required,
            Some(Clients::Require) => {
                return Err(SetupError::new("this build does not ask for certificates without looking at them")
                    .with_help("write `client_auth require_and_verify`"));
            }
        };
        Ok(Sources {
            certificate: setup.path(&config.certificate),
            key: setup.path(&config.key),
            authorities: config.authorities.as_ref().map(|name| setup.path(name)),
            clients,
        })
    }

    fn read(&self, files: &dyn Files) -> Result<ServerTls, String> {
        let read = |path: &PathBuf| files.read(path).map_err(|error| format!("open {}: {error}", path.display()));
        Ok(ServerTls {
            identity: Identity { certificates: read(&self.certificate)?, key: read(&self.key)? },
            clients: self.clients,
            authorities: self.authorities.as_ref().map(read).transpose()?,
        })
    }

    fn stamps(&self, files: &dyn Files) -> Vec<Option<Stamp>> {
        let paths = [&self.certificate, &self.key].into_iter().chain(&self.authorities);
        paths.map(|path| files.stamp(path).ok()).collect()
    }
}

/// Takes over the files when they have changed; what is wrong with them is said, and those before are used on.
fn renewal(sources: Sources, server: Arc<dyn TlsServer>, files: &dyn Files) -> Inspection {
    let mut seen = sources.stamps(files);
    Inspection::new(EVERY, move |looking| {
        let now = sources.stamps(looking.files);
        if now == seen {
            return;
        }
        seen = now;
        let path = sources.certificate.display();
        looking.lines.push(match sources.read(looking.files).and_then(|wanted| server.renew(&wanted)) {
            Ok(()) => format!("[INFO] plugin/tls: {path}: the certificate was renewed"),
            Err(error) => format!("[WARNING] plugin/tls: {path}: {error}"),
        });
    })
}
