//! Fuzz target for the log of a snapshot, from the disk.

use cluster::snapshot::{Compaction, Entry, Piece, Record, for_each_record};
use cluster::{Counts, Kind, Reducer, Request, Restore, Resumable, Slice, Source};

/// Length in bytes of a record's length in the input.
const LENGTH: usize = 2;

/// Log of a snapshot: as it is, and as records without checksums, each after its length in two bytes. A log must be
/// read up to a first wrong byte, and its compacted form must restore the same.
pub fn log(input: &[u8]) {
    for log in [input.to_vec(), framed(input)] {
        let end = for_each_record(&log, |_, _, _| {});
        if end == 0 {
            continue;
        }
        let (whole, shorter) = (restored(&log), compacted(&log[..end]));
        assert_eq!(whole, restored(&log[..end]));
        if is_plausible(&log) {
            assert_eq!(whole, restored(&shorter));
        }
        assert_eq!(for_each_record(&shorter, |_, _, _| {}), shorter.len());
    }
}

/// Returns true if no two watches see the same object, and the one of Namespaces is never closed.
fn is_plausible(log: &[u8]) -> bool {
    let mut is_plausible = true;
    for_each_record(log, |_, _, record| {
        let Record::Event { kind, namespace, entry } = record else { return };
        let of_object = match &entry {
            Entry::Applied { object, .. } => Some(object.meta().namespace),
            Entry::Seen { namespace, .. } | Entry::Deleted { namespace, .. } => Some(*namespace),
            _ => None,
        };
        is_plausible &= match kind {
            Kind::Namespace => namespace.is_none() && !matches!(entry, Entry::Closed),
            _ => namespace.is_some() && of_object.is_none_or(|of_object| Some(of_object) == namespace),
        };
    });
    is_plausible
}

/// Returns a log of the records in the input.
fn framed(mut input: &[u8]) -> Vec<u8> {
    let mut log = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<LENGTH>() {
        let (body, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        input = rest;
        log.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        log.extend_from_slice(&crc32(body).to_le_bytes());
        log.extend_from_slice(body);
    }
    log
}

/// CRC-32, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}

/// State that a log restores: numbers of objects, Services, and the watches to resume.
type State = (Counts, Vec<String>, Vec<Resumable>);

fn restored(log: &[u8]) -> Option<State> {
    let source = Source::Endpoint { url: String::new(), tls: None };
    let namespace_labels = "dns=yes".to_owned();
    let request = Request { endpoint_zones: true, pods: true, namespace_labels, ..Request::new(source) };
    let (mut reducer, index) = Reducer::new(&request.watches());
    let mut restore = Restore::new(&mut reducer);
    for_each_record(log, |_, _, record| restore.apply(record, 0));
    let mut resumable = restore.finish()?;
    resumable.sort_by(|one, other| one.watch.cmp(&other.watch));
    let mut services = Vec::new();
    index.for_each_service(|service| {
        let mut slices: Vec<String> = service.slices.iter().map(|slice| described(slice)).collect();
        slices.sort_unstable();
        services.push(format!("{}/{} {:?} {slices:?}", service.namespace, service.name, service.kind));
    });
    services.sort_unstable();
    // A compacted log has no rejected objects that were replaced later.
    Some((Counts { refused: 0, ..index.counts() }, services, resumable))
}

/// Describes a slice without its key, which is another one in each index.
fn described(slice: &Slice) -> String {
    let endpoints = slice.endpoints().map(|one| format!("{:?} {:?} {}", one.address(), one.own_label(), one.zone()));
    format!("{:?} {:?} {:?}", slice.cluster, slice.ports, endpoints.collect::<Vec<_>>())
}

fn compacted(log: &[u8]) -> Vec<u8> {
    let (mut compaction, mut shorter) = (Compaction::default(), Vec::new());
    for_each_record(log, |offset, length, record| {
        compaction.add(&record, offset as u64, u32::try_from(length).unwrap());
    });
    let written = compaction.finish(|piece| match piece {
        Piece::New(record) => record.append_to(&mut shorter),
        Piece::Copy { offset, length } => {
            let offset = usize::try_from(offset).unwrap();
            shorter.extend_from_slice(&log[offset..][..length as usize]);
            Ok(())
        }
    });
    assert_eq!(written, Ok(()));
    shorter
}
