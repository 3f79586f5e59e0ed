//! Readiness endpoint over HTTP: reports whether all plugins are ready.

use std::sync::Arc;

use config::options::{Manifest, Property, Usage};
use config::setup::{Page, PageContent, Part, Readiness, Setup, SetupError};

use crate::shared::option_helpers::listen_address;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "ready",
    "serve a readiness endpoint over HTTP",
    || Config { address: ":8181".to_owned(), again: false },
    build,
)
.without_handler()
.arguments("ready [ADDRESS]", |config, args| {
    if let Some(address) = listen_address(args)? {
        config.address = address;
    }
    Ok(())
})
.properties(&[Property {
    usage: Usage("monitor until-ready|continuously"),
    default: "until-ready",
    doc: "`until-ready` checks each plugin until it is ready once; `continuously` checks all plugins at every request.",
    set: |config, args| {
        config.again = args.choice(&[("until-ready", false), ("continuously", true)])?;
        Ok(())
    },
}]);

pub struct Config {
    address: String,
    again: bool,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    for Config { address, again } in configs {
        let readiness = Arc::clone(&setup.requests.readiness);
        setup.requests.pages.push(Page::new(address, "/ready", move || page(&readiness, again)));
    }
    Ok(None)
}

fn page(readiness: &Readiness, again: bool) -> PageContent {
    if readiness.is_ending() {
        return PageContent::text(503, "Shutting down");
    }
    match readiness.unready(again).join(",") {
        unready if unready.is_empty() => PageContent::text(200, "OK"),
        unready => PageContent::text(503, unready),
    }
}
