//! Limits queries and connections over gRPC.

use config::options::{Manifest, Property, Usage};
use config::setup::{CallLimits, Part, Setup, SetupError};

pub static MANIFEST: Manifest<CallLimits> = Manifest::new(
    "grpc_server",
    "limit queries and connections over gRPC",
    include_str!("README.md"),
    CallLimits::default,
    build,
)
.without_handler()
.repeated()
.properties(&[
    Property {
        usage: Usage("max_streams NUMBER"),
        default: "256",
        doc: "Maximum number of concurrent queries per connection; 0 for no limit.",
        set: |limits, args| {
            limits.calls_max = args.number(0..)?;
            Ok(())
        },
    },
    Property {
        usage: Usage("max_connections NUMBER"),
        default: "200",
        doc: "Maximum number of open connections per listening address; 0 for no limit.",
        set: |limits, args| {
            limits.connections_max = args.number(0..)?;
            Ok(())
        },
    },
])
.settings(|limits, settings| settings.listening.calls = *limits);

fn build(_: Vec<CallLimits>, _: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    Ok(None)
}
