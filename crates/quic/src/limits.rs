//! Limits of an endpoint, each with its reason. The defaults of quinn-proto are meant for few, trusted peers.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use quinn_proto::{
    EndpointConfig, IdleTimeout, ServerConfig, TimeSource, TransportConfig, ValidationTokenConfig, VarInt,
};

use crate::keys::Keys;
use crate::protocol::Protocol;
use crate::steering::{ConnectionIds, Place};
use crate::tokens::TOKEN_LIFETIME;

/// Bytes that a client may send on one stream before they are read. The server reads at once, so a longer query only
/// needs more round trips.
const STREAM_WINDOW: u32 = 8 << 10;
/// Bytes that a client may send on all streams before they are read: a few hundred queries per round trip.
const RECEIVE_WINDOW: u32 = 64 << 10;
/// Bytes of answers that quinn-proto keeps for repetition, per connection. The rest of longer answers waits here.
const SEND_WINDOW: u64 = 64 << 10;
/// Bytes of the TLS handshake that may arrive early: a few certificates.
pub(crate) const HANDSHAKE_BUFFER: usize = 16 << 10;
/// Length of the longest datagram that is sent. It passes every path, so there is nothing to discover: most answers are
/// shorter anyway.
pub(crate) const DATAGRAM_MAX: u16 = 1200;
/// Length of the longest datagram that is received.
pub(crate) const RECEIVED_MAX: u16 = 1472;
/// Connection attempts that may wait for a decision. The endpoint decides at once.
const UNDECIDED_MAX: usize = 4;
/// Time in which a Retry token is accepted.
const RETRY_LIFETIME: Duration = Duration::from_secs(15);
/// NEW_TOKEN frames per connection.
const TOKENS_SENT: u32 = 1;

/// Least time between two stateless resets. Each is shorter than the packet that caused it, and costs a microsecond.
/// After a restart, all clients of the former process need one.
const RESET_INTERVAL: Duration = Duration::from_millis(1);

/// Time for the handshake of a connection, as for TLS over TCP.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Connection attempts per second of one endpoint above which clients must prove their address first. A handshake takes
/// about half a millisecond of CPU, so these take a twentieth of a core.
pub(crate) const HANDSHAKES_BEFORE_RETRY: u32 = 100;
/// Handshakes in progress above which clients must prove their address first, and above which they are refused.
pub(crate) const HANDSHAKING_BEFORE_RETRY: usize = 64;
/// Maximum number of handshakes in progress in one endpoint. Each takes about 20 KiB.
pub(crate) const HANDSHAKING_MAX: usize = 512;
/// Maximum number of connections above the limit of the listener that one endpoint completes in order to tell the
/// client why it is closed.
pub(crate) const TURNED_AWAY_MAX: usize = 32;
/// Streams that a new client may open. quinn-proto keeps two table entries for each stream that may be opened: 256 take
/// 21 KiB, 100 take 5 KiB, and these take 1 KiB. A client that opens half of these gets all that it may have, so the
/// 100 streams that RFC 9114 §6.1 asks for cost it one round trip.
pub(crate) const STREAMS_AT_FIRST: u32 = 20;
/// Queries that the client of one connection may cancel per second: twice as many as it may have in flight. Cancelling
/// costs the client almost nothing (CVE-2023-44487).
pub(crate) const CANCELS_MAX: u32 = 512;
/// Estimated memory of an open stream in bytes, in quinn-proto and here.
pub(crate) const STREAM_COST: usize = 256;
/// Memory in bytes that quinn-proto keeps of a stream that has ended, to use it again. It keeps as many of them as were
/// open at once.
pub(crate) const ENDED_STREAM_COST: usize = 176;
/// Ended streams that are not counted: 3 KiB, which a usual client needs all the time.
pub(crate) const ENDED_STREAMS_FREE: usize = 16;
/// Answers of the endpoint itself that may wait to be sent: version negotiation, Retry, refusals, stateless resets.
pub(crate) const REPLIES_MAX: usize = 64;

// Clients prove their address before handshakes are refused.
const _: () = assert!(HANDSHAKING_BEFORE_RETRY < HANDSHAKING_MAX);
// Clients above the limit of the listener are fewer than those in a handshake.
const _: () = assert!(TURNED_AWAY_MAX < HANDSHAKING_MAX);
// Without the half that allows all streams, a client could not get more (`Connection::allow_all_streams`).
const _: () = assert!(STREAMS_AT_FIRST >= 2);
// A packet that is lost must not stop a stream before the connection.
const _: () = assert!(STREAM_WINDOW < RECEIVE_WINDOW);
const _: () = assert!(DATAGRAM_MAX <= RECEIVED_MAX);

/// Settings of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Protocol on the streams.
    pub protocol: Protocol,
    /// Maximum number of open streams per connection.
    pub streams_max: u32,
    /// Time after which a silent connection is closed.
    pub idle: Duration,
    /// Time for a query to arrive after its stream was opened.
    pub read: Duration,
    /// Status codes of DNS over HTTP/3.
    pub policy: doh::Policy,
}

/// Builds the configuration of connections.
pub(crate) fn server_config(
    settings: &Settings,
    tls: Arc<rustls::ServerConfig>,
    keys: &Keys,
    clock: &Arc<dyn TimeSource>,
) -> Result<ServerConfig, NoInitialCipherSuite> {
    let crypto = QuicServerConfig::try_from(tls)?;
    let mut tokens = ValidationTokenConfig::default();
    tokens.lifetime(TOKEN_LIFETIME).log(Arc::clone(&keys.used)).sent(TOKENS_SENT);
    let mut config = ServerConfig::new(Arc::new(crypto), keys.token.clone());
    config
        .transport_config(Arc::new(transport_config(settings)))
        .validation_token_config(tokens)
        .retry_token_lifetime(RETRY_LIFETIME)
        .migration(true)
        .max_incoming(UNDECIDED_MAX)
        .incoming_buffer_size(u64::from(RECEIVED_MAX))
        .incoming_buffer_size_total(u64::from(RECEIVED_MAX))
        .time_source(Arc::clone(clock));
    Ok(config)
}

fn transport_config(settings: &Settings) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(settings.streams_max.min(STREAMS_AT_FIRST).into())
        .max_concurrent_uni_streams(settings.protocol.uni_streams_max().into())
        // Longer times than QUIC can express mean the longest that it can.
        .max_idle_timeout(Some(IdleTimeout::try_from(settings.idle).unwrap_or(VarInt::MAX.into())))
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(RECEIVE_WINDOW.into())
        .send_window(SEND_WINDOW);
    set_datagrams(&mut config);
    config
}

/// Sets what is the same for connections of clients and to upstreams: the order of messages, and the size and use of
/// datagrams.
pub(crate) fn set_datagrams(config: &mut TransportConfig) {
    config
        // Messages leave in the order in which they are ready, so that each packet finishes as many as it can.
        .send_fairness(false)
        .initial_mtu(DATAGRAM_MAX)
        .min_mtu(DATAGRAM_MAX)
        .mtu_discovery_config(None)
        .crypto_buffer_size(HANDSHAKE_BUFFER)
        .datagram_receive_buffer_size(None)
        .datagram_send_buffer_size(0)
        .keep_alive_interval(None)
        .allow_spin(false)
        .enable_segmentation_offload(false);
}

/// Builds the configuration of an endpoint.
pub(crate) fn endpoint_config(keys: &Keys, place: Place, seed: [u8; 32]) -> EndpointConfig {
    let mut config = EndpointConfig::new(keys.reset.clone());
    config.cid_generator(move || Box::new(ConnectionIds::new(place, seed))).rng_seed(Some(seed));
    config.min_reset_interval(RESET_INTERVAL);
    // The value is within the bounds of the standard.
    let _ = config.max_udp_payload_size(RECEIVED_MAX);
    config
}
