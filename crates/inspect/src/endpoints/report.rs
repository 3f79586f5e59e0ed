//! Archive for a bug report: status, Corefile, metrics and log. It has no secrets: values of options that may hold one
//! are cut from the Corefile, and no file that the Corefile names is included, except for its imports.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::super::context::Context;
use super::super::refusal::Refusal;
use super::{requests, status};
use process::log::tail;
use process::version::version_text;

/// Maximum size of a file in the archive; the rest is cut off.
const FILE_MAX: usize = 8 << 20;
/// Size of a block of the format.
const BLOCK: usize = 512;
/// Folder in the archive.
const FOLDER: &str = "portolan-report";

/// Returns the archive: tar (POSIX.1-1988, ustar) with gzip.
pub(super) fn archive(context: &Context) -> Result<Vec<u8>, Refusal> {
    let status = status::status(context);
    let mut files = vec![
        ("version.txt".to_owned(), version_text() + "\n"),
        ("status.txt".to_owned(), status.to_string()),
        ("status.json".to_owned(), pretty(&status)),
        ("requests.json".to_owned(), pretty(&requests::requests(context, None))),
        ("metrics.txt".to_owned(), context.view.registry.render()),
        ("log.txt".to_owned(), tail::text()),
    ];
    let loaded = context.view.loaded();
    for (at, (name, text)) in loaded.files.iter().enumerate() {
        let file = if at == 0 { "Corefile".to_owned() } else { format!("imports/{at}") };
        files.push((file, format!("# {name}\n{text}")));
    }
    pack(&files).map_err(|error| Refusal::failed(&error))
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn pack(files: &[(String, String)]) -> io::Result<Vec<u8>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, text) in files {
        let body = &text.as_bytes()[..text.len().min(FILE_MAX)];
        out.write_all(&header(name, body.len(), now))?;
        out.write_all(body)?;
        out.write_all(&vec![0; body.len().next_multiple_of(BLOCK) - body.len()])?;
    }
    // Two blocks of zeros end an archive.
    out.write_all(&[0; 2 * BLOCK])?;
    out.finish()
}

/// Returns the header of a file: fields at fixed positions, with numbers in octal.
fn header(name: &str, size: usize, time: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        header.iter_mut().skip(at).zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    };
    put(0, &format!("{FOLDER}/{name}"));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{time:011o}"));
    // The checksum counts its own field as spaces.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    header[148..156].copy_from_slice(sum.as_bytes());
    header
}
