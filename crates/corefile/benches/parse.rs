//! Benchmark: time to parse a Corefile of 300 lines. The `reload` plugin does this every 30 seconds.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark reads the clock and prints")]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use corefile::{NoFiles, parse};

const ROUNDS: u32 = 2000;

fn main() {
    let text = three_hundred_lines();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(parse(Path::new("Corefile"), black_box(text.clone()), &NoFiles));
    }
    let lines = text.lines().count();
    println!("{lines} lines, {} bytes: {} µs", text.len(), start.elapsed().as_micros() / u128::from(ROUNDS));
}

fn three_hundred_lines() -> String {
    let common = "(common) {\n    errors\n    log . \"{remote} {name} \\\"{type}\\\"\"\n}\n";
    let block = |number: usize| {
        format!(
            "zone{number}.example.org:53, {number}.test:53 {{ # zone {number}\n    import common\n    cache {{$TTL}}30 {{\n        \
             success 9984 30\n        denial 9984 5\n    }}\n    forward . 10.0.0.{number} tls://10.1.0.{number} {{\n        \
             policy sequential\n    }}\n}}\n"
        )
    };
    common.to_owned() + &(1..30).map(block).collect::<String>()
}
