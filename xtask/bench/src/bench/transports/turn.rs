//! Results of one turn of a server.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::super::load;
use super::super::processes::{LOAD_CPU, Pinned};
use super::client::Order;
use xtask::Failed;

/// Maximum share of lost queries.
const LOST_MAX: f64 = 0.01;

/// Result of one turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Turn {
    /// The figure, in the unit of the row.
    pub(crate) figure: f64,
    /// Answers per second, and the share of the time in which the server had its core.
    pub(crate) load: Option<(f64, f64)>,
}

/// Starts the clients, on the processor of the load.
pub(crate) fn start_clients(order: &Order) -> Result<Child, Failed> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Command::new("taskset")
        .args(["-c", LOAD_CPU])
        .arg(own)
        .args(["clients", &order.write()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())
}

/// Runs the clients to their end, and returns what they measured.
fn run_clients(order: &Order) -> Result<Value, Failed> {
    let output = start_clients(order)?.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("output of the clients: {error}"))
}

/// Measures the CPU time per answer in microseconds.
pub(crate) fn of_load(order: &Order) -> Result<Turn, Failed> {
    let (answers, cpu, load) = read_load(&run_clients(order)?)?;
    Ok(Turn { figure: cpu * 1e6 / answers, load: Some(load) })
}

/// Measures the handshakes per second of CPU time.
pub(crate) fn of_handshakes(order: &Order) -> Result<Turn, Failed> {
    let (answers, cpu, load) = read_load(&run_clients(order)?)?;
    Ok(Turn { figure: answers / cpu, load: Some(load) })
}

/// Returns the answers, the CPU time in seconds and the load from the output of clients.
fn read_load(output: &Value) -> Result<(f64, f64, (f64, f64)), Failed> {
    let number = |name: &str| output[name].as_f64().unwrap_or(0.0);
    let (answers, cpu, time) = (number("answers"), number("cpu_seconds"), number("seconds"));
    if answers < 1.0 || cpu <= 0.0 || time <= 0.0 {
        return Err(format!("no answer was measured: {output}"));
    }
    Ok((answers, cpu, (answers / time, cpu / time)))
}

/// Measures the share of resumed sessions in percent.
pub(crate) fn of_resumptions(order: &Order) -> Result<Turn, Failed> {
    let resumed = run_clients(order)?["resumed"].as_f64().ok_or("the clients counted no sessions")?;
    #[allow(clippy::cast_precision_loss, reason = "some hundred")]
    Ok(Turn { figure: 100.0 * resumed / order.connections.max(1) as f64, load: None })
}

/// Measures the CPU time per answer in microseconds, over UDP with `window` queries in flight on each of 16
/// sockets.
pub(crate) fn over_udp(server: &Pinned, queries: &[String], time: Duration, window: usize) -> Result<Turn, Failed> {
    let load = load::run_with(server, queries, time, window)?;
    let others: u64 = load.rcodes.iter().skip(1).sum();
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    let lost = load.lost as f64 / (load.per_second * time.as_secs_f64()).max(1.0);
    if others > 0 || lost > LOST_MAX || load.per_second < 1.0 {
        return Err(format!("{others} answers have an error code, and {:.1} % of the queries are lost", lost * 100.0));
    }
    Ok(Turn { figure: load.cpu_each, load: Some((load.per_second, load.per_second * load.cpu_each / 1e6)) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_load_has_answers_and_takes_time() {
        let output = json!({"seconds": 2.0, "cpu_seconds": 1.0, "answers": 100});
        assert_eq!(read_load(&output), Ok((100.0, 1.0, (50.0, 0.5))));
        for missing in ["seconds", "cpu_seconds", "answers"] {
            let mut output = output.clone();
            output[missing] = json!(0);
            assert!(read_load(&output).is_err(), "{missing}");
        }
    }
}
