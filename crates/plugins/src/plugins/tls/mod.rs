//! Certificates of the server block's `tls://` and `grpc://` listeners.

use std::sync::Arc;

use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::tls::ClientCertificates;

use crate::shared::server_certificates::Certificates;

/// Parsed `tls` line.
#[derive(Default)]
pub struct Config {
    certificate: String,
    key: String,
    authorities: Option<String>,
    clients: Option<Clients>,
}

/// Mode of `client_auth`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clients {
    NoCert,
    Request,
    VerifyIfGiven,
    RequireAndVerify,
}

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "tls",
    "set the certificate for DNS over TLS and gRPC",
    include_str!("README.md"),
    Config::default,
    build,
)
.without_handler()
.encrypts()
.arguments("tls CERT KEY [CA]", read_files)
.properties(&[
    Property {
        usage: Usage("client_auth nocert|request|require|verify_if_given|require_and_verify"),
        default: "nocert",
        doc: "Client certificates: `nocert` and `request` do not request any, `verify_if_given` verifies them if \
              present, `require_and_verify` requires a valid one. `require` is not supported by this build.",
        set: |config, args| {
            config.clients = args.choice(&[
                ("nocert", Some(Clients::NoCert)),
                ("request", Some(Clients::Request)),
                ("require", None),
                ("verify_if_given", Some(Clients::VerifyIfGiven)),
                ("require_and_verify", Some(Clients::RequireAndVerify)),
            ])?;
            if config.clients.is_none() {
                let message = "this build cannot require client certificates without verifying them";
                args.line_not_here(message, "write `client_auth require_and_verify`");
            }
            Ok(())
        },
    },
    Property {
        usage: Usage("keylog FILE"),
        default: "",
        doc: "Not supported by this build.",
        set: |_, args| {
            args.word()?;
            args.line_not_here("this build does not log TLS keys", "remove the line");
            Ok(())
        },
    },
]);

fn read_files(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    let certificate = args.word()?;
    if certificate.text == "acme" {
        args.take_rest();
        let help = "use the files of an ACME client; they are reloaded when they change";
        args.line_not_here("this build does not obtain certificates by ACME", help);
        return Ok(());
    }
    config.certificate = certificate.text.clone();
    config.key = args.word()?.text.clone();
    config.authorities = args.next_word().map(|word| word.text.clone());
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let greets = |label: &String| ["tls://", "grpc://"].iter().any(|scheme| label.starts_with(scheme));
    let labels: Vec<String> = setup.block.sites.iter().map(|site| site.server.clone()).filter(greets).collect();
    let certificates = Certificates {
        certificate: setup.path(&config.certificate),
        key: setup.path(&config.key),
        authorities: config.authorities.as_ref().map(|name| setup.path(name)),
        clients: clients(config.clients),
    };
    let server = certificates.serve("tls", setup).map_err(SetupError::new)?;
    for label in labels {
        if setup.needs.tls.iter().any(|(known, _)| *known == label) {
            return Err(SetupError::new(format!("TLS already configured for this server instance: {label}")));
        }
        setup.needs.tls.push((label, Arc::clone(&server)));
    }
    Ok(None)
}

fn clients(asked: Option<Clients>) -> ClientCertificates {
    match asked {
        None | Some(Clients::NoCert | Clients::Request) => ClientCertificates::Unasked,
        Some(Clients::VerifyIfGiven) => ClientCertificates::Verified,
        Some(Clients::RequireAndVerify) => ClientCertificates::Required,
    }
}
