//! The cases of zones: zone files, and the verdict of a server on each case.

use std::fmt::Write as _;
use std::path::Path;

use specification::compare::differences;
use specification::record::Data;
use specification::scope::{Block, Case};

use crate::ask;
use crate::programs::{Kind, Program};
use crate::report::Verdict;
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

/// Returns the name of a zone file, which has no dot at its end.
pub(crate) fn file_name(origin: &str) -> String {
    format!("db.{}", origin.trim_end_matches('.'))
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

/// Starts a server with the zones, and asks it all cases.
pub(crate) fn test<'b>(
    kind: Kind,
    binary: &Path,
    blocks: &'b [Block],
    folder: &Path,
) -> Result<Vec<Verdict<'b>>, Failed> {
    let origins: Vec<&str> = blocks.iter().map(|block| block.zone.origin.as_str()).collect();
    let program = Program::start(kind, binary, &origins, folder)?;
    let all: Vec<(&Block, &Case)> =
        blocks.iter().flat_map(|block| block.cases.iter().map(move |case| (block, case))).collect();
    let responses = ask::all(program.address(), all.iter().map(|(_, case)| &case.question))?;
    let verdicts = all.into_iter().zip(responses).map(|((block, case), response)| Verdict {
        differences: match &response {
            Ok(response) => differences(&case.answer, response),
            Err(what) => vec![what.clone()],
        },
        block,
        case,
        response: response.ok(),
    });
    Ok(verdicts.collect())
}
