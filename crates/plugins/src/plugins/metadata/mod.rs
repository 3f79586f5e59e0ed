//! Enables metadata labels, which plugins use to share information about queries.

use config::options::{Effect, Manifest, Role};
use config::setup::{Part, Setup, SetupError};
use wire::Name;

pub static MANIFEST: Manifest<Vec<Name>> =
    Manifest::new("metadata", "share information about queries between plugins", Vec::new, build)
        .arguments("metadata [ZONES...]", |zones, args| {
            *zones = args.zones()?;
            Ok(())
        })
        .sets_labels()
        .role(|line| Role::new(Effect::Aside, line.config));

fn build(configs: Vec<Vec<Name>>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let named: Vec<Name> = configs.into_iter().flatten().collect();
    let zones = setup.zones_or_keys(&named);
    setup.labels().switch_on(zones);
    Ok(None)
}
