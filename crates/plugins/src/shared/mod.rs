//! Code that several plugins use. What plugins of `common_plugins` use too is there.

pub(crate) mod embedded_addresses;
pub(crate) mod frame_streams;
pub(crate) mod protobuf;
pub(crate) mod record_queue;
pub(crate) mod signing;
pub(crate) mod update_keys;
pub(crate) mod zone_store;
