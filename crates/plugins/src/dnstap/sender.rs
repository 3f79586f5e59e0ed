//! The other end of the buffer: a job that brings messages to the collector, or hands them out to those that come.

use core::time::Duration;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use engine::Outside;
use engine::log::{Level, Source};
use engine::metrics::Counter;
use engine::octets::{Dial, Listen, OctetListener, Place};
use engine::setup::{Ending, Setup, SetupError};
use engine::tls::{ClientCertificates, ClientTls, TlsClient, TlsMaker, TlsServer};

use super::collector::{Collector, PATIENCE};
use super::config::{Config, Files};
use crate::certificates::Certificates;
use crate::outlet::{First, Outlet, first};

const SOURCE: Source<'_> = Source::Plugin("dnstap");

/// Messages leave at least so often.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How long to wait before a collector is looked for again; each time in vain twice as long.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The longest such wait.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(16);
/// Collectors that are served by one line at a time.
const COLLECTORS_MAX: usize = 16;
/// Octets in a MiB.
const MIB: usize = 1 << 20;

/// Brings messages to collectors.
pub(super) struct Sender {
    outlet: Arc<Outlet>,
    lost: Counter,
    place: Place,
    way: Way,
    send_buffer: Option<usize>,
}

enum Way {
    /// To a collector.
    Dial(Option<TlsClient>),
    /// Collectors come.
    Listen(Option<Arc<dyn TlsServer>>),
}

/// What brings the messages of one line away.
///
/// # Errors
/// If its TLS cannot be made.
pub(super) fn of(
    config: &Config,
    outlet: Arc<Outlet>,
    lost: Counter,
    setup: &mut Setup<'_>,
) -> Result<Sender, SetupError> {
    let failed = |error| SetupError::new(format!("tls: {error}"));
    let way = match (&config.tls, config.listen) {
        (Some(files), true) if config.encrypted => {
            Way::Listen(Some(certificates(files, setup).serve("dnstap", setup).map_err(failed)?))
        }
        (_, true) => Way::Listen(None),
        (_, false) if config.encrypted => {
            let maker: Option<Arc<dyn TlsMaker>> = setup.process.find();
            let maker = maker.ok_or_else(|| SetupError::new("there is no TLS here"))?;
            Way::Dial(Some(maker.client(&client_tls(config)).map_err(failed)?))
        }
        (_, false) => Way::Dial(None),
    };
    let send_buffer = Some(config.write_buffer * MIB);
    Ok(Sender { outlet, lost, place: config.place.clone(), way, send_buffer })
}

/// What is asked of a collector: a certificate of its name.
fn client_tls(config: &Config) -> ClientTls {
    let Place::Tcp(address) = &config.place else { return ClientTls::default() };
    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
    let server_name = Some(host.trim_start_matches('[').trim_end_matches(']').to_owned());
    ClientTls { server_name, unverified: config.skip_verify, ..ClientTls::default() }
}

/// What is shown to collectors; with authorities, they must show certificates too.
fn certificates(files: &Files, setup: &Setup<'_>) -> Certificates {
    let clients = if files.authorities.is_some() { ClientCertificates::Required } else { ClientCertificates::Unasked };
    Certificates {
        certificate: setup.path(&files.certificates),
        key: setup.path(&files.key),
        authorities: files.authorities.as_ref().map(|name| setup.path(name)),
        clients,
    }
}

/// The generation has ended.
struct Ended;

impl Sender {
    /// Goes on until it is told to end, and then brings away what is left.
    pub(super) async fn run(self, outside: Rc<dyn Outside>, mut ending: Ending) {
        // Either comes to its end when it is told to, and in no other way.
        let (Ok(Ended) | Err(Ended)) = match &self.way {
            Way::Dial(tls) => self.bring(tls.as_ref(), &*outside, &mut ending).await,
            Way::Listen(tls) => self.hand_out(tls.as_ref(), &*outside, &mut ending).await,
        };
    }

    /// Looks for the collector again and again, and brings it what there is.
    async fn bring(&self, tls: Option<&TlsClient>, outside: &dyn Outside, ending: &mut Ending) -> Result<Ended, Ended> {
        let mut pause = AGAIN_AFTER;
        loop {
            let dial = Dial { to: &self.place, tls, send_buffer: self.send_buffer, until: outside.now() + PATIENCE };
            let greeted = match outside.connect(dial).await {
                Ok(stream) => Collector::greet(stream, outside).await,
                Err(error) => Err(error),
            };
            match greeted {
                Ok(collector) => {
                    match self.feed(collector, outside, ending).await {
                        Ok(ended) => return Ok(ended),
                        Err(error) => self.say(outside, "Connection to dnstap endpoint lost", &error),
                    }
                    pause = AGAIN_AFTER;
                }
                // Once is enough to say so, until there has been one.
                Err(error) if pause == AGAIN_AFTER => self.say(outside, "No connection to dnstap endpoint", &error),
                Err(_) => {}
            }
            self.report(self.outlet.take_lost(), outside);
            pause_or_end(pause, outside, ending).await?;
            pause = (pause * 2).min(AGAIN_AFTER_MAX);
        }
    }

    /// Brings a collector what there is, until it takes no more or the end has come.
    async fn feed(&self, mut collector: Collector, outside: &dyn Outside, ending: &mut Ending) -> io::Result<Ended> {
        let mut octets = Vec::new();
        loop {
            let turn = self.wait(outside, ending).await;
            let taken = self.outlet.take(&mut octets);
            self.report(taken.lost, outside);
            if let Err(error) = collector.send(&octets, outside).await {
                self.report(taken.records, outside);
                return Err(error);
            }
            if turn.is_err() {
                collector.take_leave(outside).await;
                return Ok(Ended);
            }
        }
    }

    /// Lets collectors come, and hands all of them what there is.
    async fn hand_out(
        &self,
        tls: Option<&Arc<dyn TlsServer>>,
        outside: &dyn Outside,
        ending: &mut Ending,
    ) -> Result<Ended, Ended> {
        let listener = self.listener(tls, outside, ending).await?;
        let mut collectors: Vec<Collector> = Vec::new();
        let mut octets = Vec::new();
        let arrive = || {
            Box::pin(async {
                let stream = listener.accept().await?;
                Collector::greet(stream, outside).await
            })
        };
        let mut arriving = arrive();
        loop {
            let turn = match first(&mut arriving, &mut core::pin::pin!(self.wait(outside, ending))).await {
                First::One(arrived) => {
                    // Who is not understood, or too many, goes again.
                    collectors.extend(arrived.ok().filter(|_| collectors.len() < COLLECTORS_MAX));
                    arriving = arrive();
                    continue;
                }
                First::Other(turn) => turn,
            };
            let taken = self.outlet.take(&mut octets);
            self.report(taken.lost, outside);
            let mut stayed = Vec::with_capacity(collectors.len());
            for mut collector in collectors.drain(..) {
                if collector.send(&octets, outside).await.is_ok() {
                    stayed.push(collector);
                }
            }
            collectors = stayed;
            if turn.is_err() {
                for collector in collectors {
                    collector.take_leave(outside).await;
                }
                return Ok(Ended);
            }
        }
    }

    /// The place to which collectors come. An earlier generation may still have it.
    async fn listener(
        &self,
        tls: Option<&Arc<dyn TlsServer>>,
        outside: &dyn Outside,
        ending: &mut Ending,
    ) -> Result<Box<dyn OctetListener>, Ended> {
        let mut pause = AGAIN_AFTER;
        loop {
            match outside.listen(Listen { at: &self.place, tls, send_buffer: self.send_buffer }) {
                Ok(listener) => return Ok(listener),
                Err(error) if pause == AGAIN_AFTER * 2 => self.say(outside, "No dnstap listener", &error),
                Err(_) => {}
            }
            pause_or_end(pause, outside, ending).await?;
            pause = (pause * 2).min(AGAIN_AFTER_MAX);
        }
    }

    /// Waits until it is time to send.
    async fn wait(&self, outside: &dyn Outside, ending: &mut Ending) -> Result<(), Ended> {
        let mut enough = core::pin::pin!(self.outlet.has_enough());
        match first(
            ending,
            &mut core::pin::pin!(first(&mut enough, &mut outside.sleep_until(outside.now() + FLUSH_EVERY))),
        )
        .await
        {
            First::One(()) => Err(Ended),
            First::Other(_) => Ok(()),
        }
    }

    fn say(&self, outside: &dyn Outside, what: &str, error: &io::Error) {
        let place = match &self.place {
            Place::Unix(path) => path.display().to_string(),
            Place::Tcp(address) => address.clone(),
        };
        outside.log(Level::Error, SOURCE, format_args!("{what}: {place}: {error}"));
    }

    /// Counts messages that nobody got.
    fn report(&self, lost: u64, outside: &dyn Outside) {
        if lost > 0 {
            outside.counters().add(self.lost, lost);
            outside.log(Level::Warning, SOURCE, format_args!("Dropped dnstap messages: {lost}"));
        }
    }
}

async fn pause_or_end(span: Duration, outside: &dyn Outside, ending: &mut Ending) -> Result<(), Ended> {
    match first(ending, &mut outside.sleep_until(outside.now() + span)).await {
        First::One(()) => Err(Ended),
        First::Other(()) => Ok(()),
    }
}
