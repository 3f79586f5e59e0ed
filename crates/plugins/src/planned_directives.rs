//! Directives of CoreDNS that are not implemented yet. Their syntax is known, so that Corefiles that use them can be
//! checked.

use config::options::{Acts, Later, Usage};

/// A directive that may occur once per server block.
const fn once(usage: &'static str, acts: Acts, properties: &'static [&'static str]) -> Later {
    Later { usage: Usage(usage), repeated: false, acts, properties }
}

/// A directive that may occur any number of times.
const fn many(usage: &'static str, acts: Acts, properties: &'static [&'static str]) -> Later {
    Later { repeated: true, ..once(usage, acts, properties) }
}

pub static QUIC: Later = many("quic", Acts::Aside, &["max_streams NUMBER", "worker_pool_size NUMBER"]);
pub static HTTPS: Later = many("https", Acts::Aside, &["max_connections NUMBER"]);
pub static HTTPS3: Later = many("https3", Acts::Aside, &["max_streams NUMBER", "max_connections NUMBER"]);

pub static ROUTE53: Later = many(
    "route53 [ZONE:HOSTED_ZONE_ID...]",
    Acts::AnswersSome,
    &[
        "aws_access_key KEY SECRET",
        "aws_endpoint URL",
        "credentials [PROFILE [FILE]]",
        "refresh DURATION",
        "upstream [WORDS...]",
        "fallthrough [ZONES...]",
    ],
);

pub static AZURE: Later = many(
    "azure RESOURCE_GROUP:ZONE...",
    Acts::AnswersSome,
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

pub static CLOUDDNS: Later = many(
    "clouddns ZONE:PROJECT:HOSTED_ZONE...",
    Acts::AnswersSome,
    &["credentials FILE", "upstream [WORDS...]", "fallthrough [ZONES...]"],
);

pub static NOMAD: Later =
    once("nomad [ZONE]", Acts::AnswersSome, &["address URL...", "filter EXPRESSION...", "token TOKEN", "ttl NUMBER"]);
