//! A time after which a query is given up: accepted, the plugins that wait have their own.

use core::time::Duration;

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};

pub static MANIFEST: Manifest<Duration> =
    Manifest::new("cancel", "accepted for compatibility; has no effect", || TIMEOUT, build)
        .first_line_wins()
        .arguments("cancel [DURATION]", |timeout, args| {
            if !args.rest().is_empty() {
                *timeout = args.duration_above_zero()?;
            }
            Ok(())
        });

const TIMEOUT: Duration = Duration::from_millis(5001);

fn build(_: Vec<Duration>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
