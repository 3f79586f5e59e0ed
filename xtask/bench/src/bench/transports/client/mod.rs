//! Clients of all transports, as a program of their own: it runs on the processor of the load, performs one [`Order`]
//! and prints the result as JSON.
//!
//! Clients are as cheap as possible, so that the server is busy: requests are written once, and of responses only what
//! is checked is decoded. Every response must be complete, have the status 200 if it has one, and answer the query.

mod dns;
mod handshakes;
mod http1;
mod http2;
mod order;
mod protocol;
mod question;
mod quic;
mod stream;
mod tally;

use std::io::Read;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use tokio::task::LocalSet;

pub(crate) use self::order::{Job, Order, Transport};
use self::protocol::Plan;
use self::tally::Tally;
use super::super::processes::cpu_of;
use super::super::tls;
use xtask::Failed;

/// Time between the start of a load and the measurement, in which connections are opened and buffers grow.
const WARM_UP: Duration = Duration::from_millis(400);
/// Timeout for one connection to be opened and to have its answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Name of the argument.
const ORDER: &str = "order";

/// Returns the hidden command line of the clients.
pub(crate) fn command() -> Command {
    Command::new("clients").hide(true).arg(Arg::new(ORDER).required(true))
}

/// Performs an order.
pub(crate) fn main(options: &ArgMatches) -> Result<(), Failed> {
    let order = Order::read(options.get_one::<String>(ORDER).map_or("", String::as_str))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, async {
        match order.job {
            Job::Load => println!("{}", load(&order).await?),
            Job::Hold => hold(&order).await?,
            Job::Handshakes => println!("{}", handshakes::full(&order).await?),
            Job::Resumptions => println!("{}", handshakes::resumed(&order).await?),
        }
        Ok(())
    })
}

/// Loads a server in closed-loop mode, and measures its CPU time once it is warm.
async fn load(order: &Order) -> Result<Value, Failed> {
    let tally = Rc::new(Tally::default());
    for _ in 0..order.connections {
        let plan = Plan { in_flight: order.in_flight, queries: u64::MAX, stays: false };
        spawn(order, order.ports[0], plan, &tally)?;
    }
    measure(order, &tally).await
}

/// Counts answers and the CPU time of the server, after a while.
async fn measure(order: &Order, tally: &Tally) -> Result<Value, Failed> {
    tokio::time::sleep(WARM_UP).await;
    tally.check()?;
    let (begin, cpu, answers) = (Instant::now(), cpu_of(order.process), tally.answers());
    tokio::time::sleep(order.time).await;
    let (time, cpu, answers) = (begin.elapsed(), cpu_of(order.process) - cpu, tally.answers() - answers);
    tally.check()?;
    Ok(json!({"seconds": time.as_secs_f64(), "cpu_seconds": cpu.as_secs_f64(), "answers": answers}))
}

/// Opens connections to all ports, asks one query over each, and keeps them open until standard input ends.
async fn hold(order: &Order) -> Result<(), Failed> {
    let tally = Rc::new(Tally::default());
    for port in &order.ports {
        for _ in 0..order.connections {
            let expected = tally.answers() + 1;
            spawn(order, *port, Plan { in_flight: 1, queries: 1, stays: true }, &tally)?;
            tally.wait_for(expected, PATIENCE).await?;
        }
    }
    println!("{}", json!({"answers": tally.answers()}));
    let (closed, mut is_closed) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        let _ = closed.send(());
    });
    tokio::select! {
        _ = &mut is_closed => tally.check(),
        () = tally.failed() => tally.check(),
    }
}

/// Starts a conversation on a connection of its own.
fn spawn(order: &Order, port: u16, plan: Plan, tally: &Rc<Tally>) -> Result<(), Failed> {
    let (tally, transport) = (Rc::clone(tally), order.transport);
    let tls = tls::client(&order.ca, transport.alpn(), order.group.as_deref())?;
    tokio::task::spawn_local(async move {
        let ended = match transport.framing() {
            Some(framing) => quic::converse(port, framing, tls, plan, &tally).await,
            None => stream::connect_and_converse(port, transport, tls, plan, &tally).await,
        };
        tally.note(ended.map_err(|error| format!("{}: {error}", transport.name())));
    });
    Ok(())
}
