//! Background job that sends the buffered messages to the collector, or to all collectors that connect.

use core::time::Duration;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::{Setup, SetupError, Shutdown};
use engine::Io;
use engine::log::{Level, Source};
use engine::streams::{ByteListener, Dial, Listen, StreamAddress};
use engine::tls::{ClientCertificates, ClientTls, TlsClient, TlsMaker, TlsServer};
use metrics::Counter;

use super::collector::{Collector, TIMEOUT};
use super::manifest::{Config, Files};
use crate::shared::record_queue::{First, Outlet, any, first};
use common_plugins::shared::server_certificates::Certificates;

const SOURCE: Source<'_> = Source::Plugin("dnstap");

/// Maximum time that a message waits in the buffer.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// Delay before the first reconnect. Each failure doubles it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Maximum delay between reconnects.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(16);
/// Maximum number of connected collectors per line.
const COLLECTORS_MAX: usize = 16;
/// Maximum number of handshakes with collectors at the same time. Further connections wait in the queue of the socket.
const HANDSHAKES_MAX: usize = 16;
/// Number of bytes in a MiB.
const MIB: usize = 1 << 20;

/// Sender for one `dnstap` line.
pub(super) struct Sender {
    outlet: Arc<Outlet>,
    lost: Counter,
    place: StreamAddress,
    mode: Mode,
    send_buffer: Option<usize>,
}

enum Mode {
    /// Connects to a collector.
    Dial(Option<TlsClient>),
    /// Accepts collectors.
    Listen(Option<Arc<dyn TlsServer>>),
}

/// Creates the sender of a line.
///
/// # Errors
/// Fails if its TLS configuration is unusable.
pub(super) fn of(
    config: &Config,
    outlet: Arc<Outlet>,
    lost: Counter,
    setup: &mut Setup<'_>,
) -> Result<Sender, SetupError> {
    let mode = match (&config.tls, config.listen) {
        (Some(files), true) if config.encrypted => {
            Mode::Listen(Some(certificates(files, setup).serve("dnstap", setup).map_err(tls_error)?))
        }
        (_, true) => Mode::Listen(None),
        (_, false) if config.encrypted => {
            let maker: Option<Arc<dyn TlsMaker>> = setup.process.find();
            let maker = maker.ok_or_else(|| SetupError::new("TLS is not available in this process"))?;
            Mode::Dial(Some(maker.client(&client_tls(config)).map_err(tls_error)?))
        }
        (_, false) => Mode::Dial(None),
    };
    let send_buffer = Some(config.write_buffer * MIB);
    Ok(Sender { outlet, lost, place: config.place.clone(), mode, send_buffer })
}

fn tls_error(error: impl core::error::Error) -> SetupError {
    SetupError::new(format!("tls: {error}"))
}

/// Returns the TLS settings for a collector: its certificate must contain the host of its address.
fn client_tls(config: &Config) -> ClientTls {
    let StreamAddress::Tcp(address) = &config.place else { return ClientTls::default() };
    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
    let server_name = Some(host.trim_start_matches('[').trim_end_matches(']').to_owned());
    ClientTls { server_name, unverified: config.skip_verify, ..ClientTls::default() }
}

/// Returns the certificates for collectors that connect. If `authorities` are set, collectors must present certificates
/// too.
fn certificates(files: &Files, setup: &Setup<'_>) -> Certificates {
    let clients = if files.authorities.is_some() { ClientCertificates::Required } else { ClientCertificates::Unasked };
    Certificates {
        certificate: setup.path(&files.certificates),
        key: setup.path(&files.key),
        authorities: files.authorities.as_ref().map(|name| setup.path(name)),
        clients,
        key_log: None,
    }
}

/// Marker: the configuration generation of this job has ended.
struct Stopped;

impl Sender {
    /// Runs until shutdown and then sends what is left.
    pub(super) async fn run(self, io: Rc<dyn Io>, mut ending: Shutdown) {
        // Both run until shutdown and never return for another reason.
        let (Ok(Stopped) | Err(Stopped)) = match &self.mode {
            Mode::Dial(tls) => self.dial_and_send(tls.as_ref(), &*io, &mut ending).await,
            Mode::Listen(tls) => self.accept_and_send(tls.as_ref(), &*io, &mut ending).await,
        };
    }

    /// Connects to the collector, reconnects after failures, and sends the buffered messages.
    async fn dial_and_send(
        &self,
        tls: Option<&TlsClient>,
        io: &dyn Io,
        ending: &mut Shutdown,
    ) -> Result<Stopped, Stopped> {
        let mut pause = AGAIN_AFTER;
        loop {
            let dial = Dial { to: &self.place, tls, send_buffer: self.send_buffer, until: io.now() + TIMEOUT };
            let greeted = match io.connect(dial).await {
                Ok(stream) => Collector::handshake(stream, io).await,
                Err(error) => Err(error),
            };
            match greeted {
                Ok(collector) => {
                    match self.send_until_shutdown(collector, io, ending).await {
                        Ok(ended) => return Ok(ended),
                        Err(error) => self.say(io, "Connection to dnstap endpoint lost", &error),
                    }
                    pause = AGAIN_AFTER;
                }
                // Log only the first failure in a row.
                Err(error) if pause == AGAIN_AFTER => self.say(io, "No connection to dnstap endpoint", &error),
                Err(_) => {}
            }
            self.report(self.outlet.take_lost(), io);
            pause_or_end(pause, io, ending).await?;
            pause = (pause * 2).min(AGAIN_AFTER_MAX);
        }
    }

    /// Sends buffered messages to a collector until it fails or the job is shut down.
    async fn send_until_shutdown(
        &self,
        mut collector: Collector,
        io: &dyn Io,
        ending: &mut Shutdown,
    ) -> io::Result<Stopped> {
        let mut bytes = Vec::new();
        loop {
            let turn = self.wait(io, ending).await;
            let drained = self.outlet.drain(&mut bytes);
            self.report(drained.lost, io);
            if let Err(error) = collector.send(&bytes, io).await {
                self.report(drained.records, io);
                return Err(error);
            }
            if turn.is_err() {
                collector.close(io).await;
                return Ok(Stopped);
            }
        }
    }

    /// Accepts collectors and sends the buffered messages to all of them.
    async fn accept_and_send(
        &self,
        tls: Option<&Arc<dyn TlsServer>>,
        io: &dyn Io,
        ending: &mut Shutdown,
    ) -> Result<Stopped, Stopped> {
        let listener = self.listener(tls, io, ending).await?;
        let mut collectors: Vec<Collector> = Vec::new();
        let mut bytes = Vec::new();
        let arrive = || {
            Box::pin(async {
                let stream = listener.accept().await?;
                Collector::handshake(stream, io).await
            })
        };
        // Each accepts a connection and greets it, so that a silent collector does not delay others.
        let mut arriving: Vec<_> = (0..HANDSHAKES_MAX).map(|_| arrive()).collect();
        loop {
            let event = first(&mut any(&mut arriving), &mut core::pin::pin!(self.wait(io, ending))).await;
            let turn = match event {
                First::One((at, arrived)) => {
                    // Drop a collector whose handshake failed or that exceeds the limit.
                    collectors.extend(arrived.ok().filter(|_| collectors.len() < COLLECTORS_MAX));
                    arriving[at] = arrive();
                    continue;
                }
                First::Other(turn) => turn,
            };
            let drained = self.outlet.drain(&mut bytes);
            self.report(drained.lost, io);
            let mut stayed = Vec::with_capacity(collectors.len());
            for mut collector in collectors.drain(..) {
                if collector.send(&bytes, io).await.is_ok() {
                    stayed.push(collector);
                }
            }
            collectors = stayed;
            if turn.is_err() {
                for collector in collectors {
                    collector.close(io).await;
                }
                return Ok(Stopped);
            }
        }
    }

    /// Opens the listener. Retries while an earlier generation still holds the address.
    async fn listener(
        &self,
        tls: Option<&Arc<dyn TlsServer>>,
        io: &dyn Io,
        ending: &mut Shutdown,
    ) -> Result<Box<dyn ByteListener>, Stopped> {
        let mut pause = AGAIN_AFTER;
        loop {
            match io.listen(Listen { at: &self.place, tls, send_buffer: self.send_buffer }) {
                Ok(listener) => return Ok(listener),
                Err(error) if pause == AGAIN_AFTER * 2 => self.say(io, "No dnstap listener", &error),
                Err(_) => {}
            }
            pause_or_end(pause, io, ending).await?;
            pause = (pause * 2).min(AGAIN_AFTER_MAX);
        }
    }

    /// Waits until it is time to send.
    async fn wait(&self, io: &dyn Io, ending: &mut Shutdown) -> Result<(), Stopped> {
        let mut enough = core::pin::pin!(self.outlet.has_enough());
        match first(ending, &mut core::pin::pin!(first(&mut enough, &mut io.sleep_until(io.now() + FLUSH_EVERY)))).await
        {
            First::One(()) => Err(Stopped),
            First::Other(_) => Ok(()),
        }
    }

    fn say(&self, io: &dyn Io, what: &str, error: &io::Error) {
        let place = match &self.place {
            StreamAddress::Unix(path) => path.display().to_string(),
            StreamAddress::Tcp(address) => address.clone(),
        };
        io.log(Level::Error, SOURCE, format_args!("{what}: {place}: {}", host::errors::describe(error)));
    }

    /// Counts and logs messages that were not delivered.
    fn report(&self, lost: u64, io: &dyn Io) {
        if lost > 0 {
            io.counters().add(self.lost, lost);
            io.log(Level::Warning, SOURCE, format_args!("Dropped dnstap messages: {lost}"));
        }
    }
}

async fn pause_or_end(span: Duration, io: &dyn Io, ending: &mut Shutdown) -> Result<(), Stopped> {
    match first(ending, &mut io.sleep_until(io.now() + span)).await {
        First::One(()) => Err(Stopped),
        First::Other(()) => Ok(()),
    }
}
