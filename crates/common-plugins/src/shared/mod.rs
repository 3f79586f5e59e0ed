//! Code that several plugins use, here and in the crate `plugins`.

pub mod any_type;
pub mod cache_statistics;
pub mod cluster_sources;
pub mod cluster_view;
pub mod endpoint_hash;
pub mod file_problems;
pub mod last_good;
pub mod log_format;
pub mod open_error;
pub mod option_helpers;
pub mod probe_mark;
pub mod query_expression;
pub mod record_text;
pub mod resolver_arpa;
pub mod response_class;
pub mod seen_records;
pub mod server_certificates;
pub mod service_records;
pub mod soa_record;
pub mod upstream_options;
pub mod zone_records;
