//! Limits of a connection to an upstream, each with its reason.

use std::time::Duration;

use quinn_proto::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};

use crate::limits::{RECEIVED_MAX, set_datagrams};
use crate::protocol::Protocol;

/// Bytes that the upstream may send on one stream before they are read: one response of the maximum length.
const STREAM_WINDOW: u32 = 68 << 10;
/// Bytes that the upstream may send on all streams before they are read, which happens at once. Bytes behind a gap
/// wait.
const RECEIVE_WINDOW: u32 = 256 << 10;
/// Bytes of queries that quinn-proto keeps for repetition.
const SEND_WINDOW: u64 = 64 << 10;
/// Idle time after which the connection is lost. The pool closes idle connections earlier, unless the Corefile asks it
/// to keep them longer; the upstream usually does too.
const IDLE: Duration = Duration::from_secs(30);
/// Round-trip time that is assumed before the first measurement. The first packet is sent again after three times this,
/// like a query over UDP.
const INITIAL_RTT: Duration = Duration::from_millis(133);

/// Returns the configuration of a connection. The upstream may open no streams over DNS over QUIC (RFC 9250 §4.2), and
/// the critical ones over HTTP/3. Nothing is sent to keep
/// an idle connection open, because a new one costs less than the traffic (RFC 9250 §5.5.1).
pub(super) fn transport_config(protocol: Protocol) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(protocol.uni_streams_max().into())
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(RECEIVE_WINDOW.into())
        .send_window(SEND_WINDOW)
        .initial_rtt(INITIAL_RTT);
    set_datagrams(&mut config);
    config
}

/// Returns the configuration of the endpoint of a connection.
pub(super) fn endpoint_config(seed: [u8; 32]) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.rng_seed(Some(seed));
    // The value is within the bounds of the standard.
    let _ = config.max_udp_payload_size(RECEIVED_MAX);
    config
}
