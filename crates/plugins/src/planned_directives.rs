//! Directives of CoreDNS that are not implemented yet. Their syntax is known, so that Corefiles that use them can be
//! checked.

use config::options::{Effect, PlannedDirective, Usage};

/// A directive that may occur once per server block.
const fn once(usage: &'static str, effect: Effect, properties: &'static [&'static str]) -> PlannedDirective {
    PlannedDirective { usage: Usage(usage), repeated: false, effect, properties }
}

/// A directive that may occur any number of times.
const fn many(usage: &'static str, effect: Effect, properties: &'static [&'static str]) -> PlannedDirective {
    PlannedDirective { repeated: true, ..once(usage, effect, properties) }
}

pub(crate) static ROUTE53: PlannedDirective = many(
    "route53 [ZONE:HOSTED_ZONE_ID...]",
    Effect::AnswersSome,
    &[
        "aws_access_key KEY SECRET",
        "aws_endpoint URL",
        "credentials [PROFILE [FILE]]",
        "refresh DURATION",
        "upstream [WORDS...]",
        "fallthrough [ZONES...]",
    ],
);

pub(crate) static AZURE: PlannedDirective = many(
    "azure RESOURCE_GROUP:ZONE...",
    Effect::AnswersSome,
    &[
        "tenant ID",
        "client ID",
        "secret SECRET",
        "subscription ID",
        "environment NAME",
        "access public|private",
        "fallthrough [ZONES...]",
    ],
);

pub(crate) static CLOUDDNS: PlannedDirective = many(
    "clouddns ZONE:PROJECT:HOSTED_ZONE...",
    Effect::AnswersSome,
    &["credentials FILE", "upstream [WORDS...]", "fallthrough [ZONES...]"],
);

pub(crate) static NOMAD: PlannedDirective =
    once("nomad [ZONE]", Effect::AnswersSome, &["address URL...", "filter EXPRESSION...", "token TOKEN", "ttl NUMBER"]);
