//! Databases of CoreDNS's *dynupdate*, which are read once, to take over a zone.
//!
//! They are bbolt files: a copy-on-write B+ tree of pages. Two meta pages take turns; the one with the higher
//! transaction is valid. The bucket `dynupdate-v1` has two keys: `origin`, the zone as text, and `records`, all records
//! in wire format one after another. Numbers are in the byte order of the machine, here little-endian.

/// Number that starts a meta page, and its version.
const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// Length in bytes of a page header, of a meta page after it, of a bucket and of an element.
const PAGE_HEADER: usize = 16;
const META: usize = 64;
const BUCKET: usize = 16;
const ELEMENT: usize = 16;
/// Kinds of pages, and the flag of a leaf element that holds a bucket.
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const IS_BUCKET: u32 = 1;
/// Sizes of pages that bbolt uses: that of the memory pages of the machine.
const PAGE_SIZES: core::ops::RangeInclusive<usize> = 1024..=1 << 16;
/// Maximum depth of the tree. The real one has one or two levels.
const DEPTH_MAX: usize = 8;

/// Contents of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Database<'a> {
    /// Name of the zone as text.
    pub(super) origin: &'a [u8],
    /// Records in wire format.
    pub(super) records: &'a [u8],
}

/// Returns true if the file is a bbolt file, maybe a damaged one.
pub(super) fn is_bbolt(file: &[u8]) -> bool {
    u32_at(file, PAGE_HEADER) == Some(MAGIC)
}

/// Reads the newest version of a database. `None` if the file is damaged or has other contents.
pub(super) fn read(file: &[u8]) -> Option<Database<'_>> {
    let first = Meta::read(file, 0);
    // The size of the pages is in the first meta page, or follows from where the second one is.
    let size = first.as_ref().map_or_else(|| file.len().min(4096), |meta| meta.page_size);
    let metas = [first, Meta::read(file, size)];
    let meta = metas.into_iter().flatten().max_by_key(|meta| meta.transaction)?;
    let tree = Tree { file, page_size: meta.page_size };
    let bucket = tree.find(tree.page(meta.root)?, b"dynupdate-v1", DEPTH_MAX).filter(|found| found.is_bucket)?.value;
    let root = u64_at(bucket, 0)?;
    // A small bucket has its page behind its header.
    let page = if root == 0 { bucket.get(BUCKET..)? } else { tree.page(root)? };
    let value = |key: &[u8]| tree.find(page, key, DEPTH_MAX).filter(|found| !found.is_bucket).map(|found| found.value);
    Some(Database { origin: value(b"origin")?, records: value(b"records")? })
}

struct Meta {
    page_size: usize,
    root: u64,
    transaction: u64,
}

impl Meta {
    /// Reads the meta page at an offset, if it is valid.
    fn read(file: &[u8], page: usize) -> Option<Meta> {
        let meta = file.get(page.checked_add(PAGE_HEADER)?..)?.get(..META)?;
        let (content, sum) = meta.split_last_chunk::<8>()?;
        let is_meta = u32_at(meta, 0)? == MAGIC && u32_at(meta, 4)? == VERSION;
        let page_size = usize::try_from(u32_at(meta, 8)?).ok()?;
        let is_valid =
            is_meta && PAGE_SIZES.contains(&page_size) && super::checksum::fnv(content) == u64::from_le_bytes(*sum);
        is_valid.then_some(Meta { page_size, root: u64_at(meta, 16)?, transaction: u64_at(meta, 48)? })
    }
}

struct Tree<'a> {
    file: &'a [u8],
    page_size: usize,
}

/// Value of a key.
struct Found<'a> {
    is_bucket: bool,
    value: &'a [u8],
}

impl<'a> Tree<'a> {
    /// Returns the file from a page on, because a value may extend over the pages that follow.
    fn page(&self, id: u64) -> Option<&'a [u8]> {
        self.file.get(usize::try_from(id).ok()?.checked_mul(self.page_size)?..)
    }

    /// Finds a key below a page.
    fn find(&self, page: &'a [u8], key: &[u8], depth: usize) -> Option<Found<'a>> {
        let (flags, count) = (u16_at(page, 8)?, usize::from(u16_at(page, 10)?));
        let elements = (0..count).map(|at| page.get(PAGE_HEADER + at * ELEMENT..).unwrap_or_default());
        match flags {
            LEAF => elements.into_iter().find_map(|element| {
                let (at, key_len) = (usize_at(element, 4)?, usize_at(element, 8)?);
                let data = element.get(at..)?;
                let value = data.get(key_len..)?.get(..usize_at(element, 12)?)?;
                let is_it = data.get(..key_len)? == key;
                is_it.then_some(Found { is_bucket: u32_at(element, 0)? & IS_BUCKET != 0, value })
            }),
            // Each element has the smallest key below it.
            BRANCH if depth > 0 => {
                let starts_before = |element: &&[u8]| {
                    let first = usize_at(element, 0).zip(usize_at(element, 4));
                    first.and_then(|(at, len)| element.get(at..)?.get(..len)).is_some_and(|first| first <= key)
                };
                let element = elements.rev().find(starts_before)?;
                self.find(self.page(u64_at(element, 8)?)?, key, depth - 1)
            }
            _ => None,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, at)?).ok()
}
