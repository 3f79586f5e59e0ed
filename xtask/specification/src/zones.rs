//! The cases of zones: zone files, and a server with all of them.

use std::fmt::Write as _;
use std::path::Path;

use specification::record::{Data, Question, Type};
use specification::scope::Block;
use specification::text;

use crate::programs::{Kind, Program, file_name};
use crate::report::Subject;
use crate::write;
use xtask::Failed;

/// Fields of the SOA record of each zone.
const SOA: &str = "SOA ns.invalid. host.invalid. 1 3600 600 86400 60";

/// Returns the blocks with an origin for each.
pub(crate) fn with_origins(blocks: &[Block]) -> Vec<Block> {
    blocks.iter().enumerate().map(|(number, block)| block.moved(&format!("z{number}.test."))).collect()
}

/// Writes the zone files, `db.ORIGIN` each.
pub(crate) fn write_all(blocks: &[Block], folder: &Path) -> Result<(), Failed> {
    blocks.iter().try_for_each(|block| write(&folder.join(file_name(&block.zone.origin)), &zone_file(block)))
}

fn zone_file(block: &Block) -> String {
    let mut text = String::from("$TTL 60\n");
    // The SOA record comes first, as some servers want it.
    let is_soa = |data: &Data| matches!(data, Data::Soa);
    let _ = writeln!(text, "{} {SOA}", block.zone.origin);
    for record in block.zone.records.iter().filter(|record| !is_soa(&record.data)) {
        let _ = writeln!(text, "{record}");
    }
    text
}

/// Returns the blocks as subjects.
pub(crate) fn subjects(blocks: &[Block]) -> Vec<Subject> {
    blocks.iter().map(|block| Subject { setting: text::zone(&block.zone), cases: block.cases.clone() }).collect()
}

/// Starts a server with the zones of a folder.
pub(crate) fn start(server: (Kind, &Path), blocks: &[Block], folder: &Path) -> Result<Program, Failed> {
    let origins: Vec<&str> = blocks.iter().map(|block| block.zone.origin.as_str()).collect();
    let probe = Question { name: (*origins.last().unwrap_or(&".")).to_owned(), qtype: Type::Soa };
    Program::start(server, |port| server.0.zones(&origins, folder, port), &probe, folder)
}
