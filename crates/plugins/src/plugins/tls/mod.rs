//! Certificates of the server block's encrypted listeners.

use std::sync::Arc;

use config::conflict_text;
use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{EncryptionLimits, EncryptionPolicy, ListenerTls, Part, Setup, SetupError};
use engine::tls::ClientCertificates;

use common_plugins::shared::server_certificates::{Certificates, ServedCertificate};

/// Parsed `tls` line.
#[derive(Default)]
pub struct Config {
    certificate: String,
    key: String,
    authorities: Option<String>,
    clients: ClientCertificates,
    key_log: Option<String>,
    pads_responses: bool,
    limits: EncryptionLimits,
}

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "tls",
    "set the certificate for DNS over TLS, HTTPS, QUIC and gRPC",
    Config::default,
    build,
)
.without_handler()
.encrypts()
.settings(|config, settings| {
    settings.listening.encryption = config.limits;
    settings.encryption = Some(EncryptionPolicy {
        clients: config.clients,
        has_authorities: config.authorities.is_some(),
        limits: config.limits,
        pads_responses: config.pads_responses,
    });
})
.arguments("tls CERT KEY [CA]", read_files)
.properties(&[
    Property {
        usage: Usage("client_auth nocert|request|require|verify_if_given|require_and_verify"),
        default: "nocert",
        doc: "Client certificates: `nocert` does not request any, `request` requests one and ignores it, `require` \
              requires one and does not verify it, `verify_if_given` verifies it if present, `require_and_verify` \
              requires a valid one.",
        set: |config, args| {
            let mode = args.rest().first();
            config.clients = args.choice(&[
                ("nocert", ClientCertificates::Unasked),
                ("request", ClientCertificates::Requested),
                ("require", ClientCertificates::Any),
                ("verify_if_given", ClientCertificates::Verified),
                ("require_and_verify", ClientCertificates::Required),
            ])?;
            if let Some(word) = mode.filter(|_| config.clients == ClientCertificates::Any) {
                args.warn(
                    word,
                    "any client can connect, because certificates are not verified; \
                                 write `require_and_verify` to verify them",
                );
            }
            Ok(())
        },
    },
    Property {
        usage: Usage("keylog FILE"),
        default: "",
        doc: "Appends the secrets of all sessions to this file, for Wireshark. For debugging only.",
        set: |config, args| {
            let file = args.word()?;
            config.key_log = Some(file.text.clone());
            args.warn(file, "anyone who can read this file can decrypt the queries; remove the line after debugging");
            Ok(())
        },
    },
    Property {
        usage: Usage("connection_rate NUMBER"),
        default: "1000",
        doc: "Maximum number of new connections per second from one IPv4 address or IPv6 prefix of 64 bits; 0 for no \
              limit. CoreDNS does not have this property.",
        set: |config, args| {
            config.limits.connection_rate = args.number(0..)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("pad_responses"),
        default: "",
        doc: "Pads responses to a multiple of 468 bytes if the query has the padding option (RFC 7830, RFC 8467 §4.1).",
        set: |config, _| {
            config.pads_responses = true;
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
    let certificates = Certificates {
        certificate: setup.path(&config.certificate),
        key: setup.path(&config.key),
        authorities: config.authorities.as_ref().map(|name| setup.path(name)),
        clients: config.clients,
        key_log: config.key_log.as_ref().map(|name| setup.path(name)),
    };
    setup.below.provide(ServedCertificate(certificates.certificate.clone()));
    let (server, material) = certificates.serve_with_material("tls", setup).map_err(SetupError::from_error)?;
    let block = setup.block;
    for site in block.sites.iter().filter(|site| !site.server.starts_with("dns://")) {
        // A handshake does not tell which block will answer, so the first block on a listener decides for all.
        if let Some(first) = setup.requests.tls.iter().find(|known| known.listener == site.server) {
            let Some(reason) = first.material.difference(&material) else { continue };
            return Err(SetupError::new(conflict_text(&site.server, [&first.zone, &site.zone], reason))
                .with_help("use the same certificates in both server blocks, or let them listen on other ports"));
        }
        setup.requests.tls.push(ListenerTls {
            listener: site.server.clone(),
            zone: site.zone.clone(),
            server: Arc::clone(&server),
            material: Arc::clone(&material),
            pads_responses: config.pads_responses,
        });
    }
    Ok(None)
}
