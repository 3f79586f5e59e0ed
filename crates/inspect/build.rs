//! Compresses the description of the control API, which takes a tenth of its 110 KB then. Few servers are asked for it.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build script writes a file and instructs Cargo through its output"
)]

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Description of the control API, which `cargo xtask gen` writes.
const TEXT: &str = "../../docs/openapi.json";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={TEXT}");
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&fs::read(TEXT)?)?;
    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(folder.join("openapi.json.gz"), packed.finish()?)?;
    Ok(())
}
