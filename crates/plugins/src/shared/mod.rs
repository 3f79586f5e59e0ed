//! Code that several plugins use.

pub(crate) mod cache_statistics;
pub(crate) mod cluster_sources;
pub(crate) mod cluster_view;
pub(crate) mod embedded_addresses;
pub(crate) mod endpoint_hash;
pub(crate) mod frame_streams;
pub(crate) mod last_good;
pub(crate) mod log_format;
pub(crate) mod open_error;
pub(crate) mod option_helpers;
pub(crate) mod probe_mark;
pub(crate) mod protobuf;
pub(crate) mod query_expression;
pub(crate) mod record_queue;
pub(crate) mod record_text;
pub(crate) mod resolver_arpa;
pub(crate) mod response_class;
pub(crate) mod seen_records;
pub(crate) mod server_certificates;
pub(crate) mod service_records;
pub(crate) mod signing;
pub(crate) mod soa_record;
pub(crate) mod update_keys;
pub(crate) mod upstream_options;
pub(crate) mod zone_records;
pub(crate) mod zone_store;
