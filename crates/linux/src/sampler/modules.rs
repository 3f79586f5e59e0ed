//! The binary and the libraries that the process has loaded.

use core::ffi::CStr;
use std::path::PathBuf;

use libc::{c_int, c_void, dl_phdr_info, size_t};

/// Type of the note that has the build ID, of owner `GNU` (`NT_GNU_BUILD_ID` in elf.h).
const BUILD_ID: u32 = 3;

/// A loaded ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Path of the file.
    pub path: PathBuf,
    /// First address of its code.
    pub start: u64,
    /// Address after its code.
    pub end: u64,
    /// Offset of the code in the file.
    pub offset: u64,
    /// Difference between addresses in the process and in the file.
    pub bias: u64,
    /// Build ID in hexadecimal; empty without one.
    pub build_id: String,
    /// Index of the unwinding table (`.eh_frame_hdr`) with its address in the file.
    index: (u64, &'static [u8]),
    /// Unwinding table (`.eh_frame`) with its address in the file.
    table: (u64, &'static [u8]),
}

impl Module {
    /// Describes the module for the unwinder.
    pub(crate) fn to_unwind(&self) -> framehop::Module<&'static [u8]> {
        let range = |(start, bytes): (u64, &[u8])| start..start + bytes.len() as u64;
        let sections = framehop::ExplicitModuleSectionInfo {
            text_svma: Some(self.start - self.bias..self.end - self.bias),
            eh_frame_svma: Some(range(self.table)),
            eh_frame: Some(self.table.1),
            eh_frame_hdr_svma: Some(range(self.index)),
            eh_frame_hdr: Some(self.index.1),
            ..Default::default()
        };
        framehop::Module::new(self.path.display().to_string(), self.start..self.end, self.bias, sections)
    }
}

/// Returns the modules that have code.
pub(crate) fn loaded() -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: `add` gets the vector back as its last argument, and the call ends before the vector does.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

/// Adds a module to the vector that `into` points to. Returns 0, which means to go on.
unsafe extern "C" fn add(info: *mut dl_phdr_info, _size: size_t, into: *mut c_void) -> c_int {
    // SAFETY: the loader passes a description that is valid during this call, and `loaded` its vector. Segments stay
    // mapped as long as the module is loaded, and this process unloads none.
    let (info, into) = unsafe { (&*info, &mut *into.cast::<Vec<Module>>()) };
    // SAFETY: as above.
    if let Some(module) = unsafe { module(info) } {
        into.push(module);
    }
    0
}

/// Describes a module that has code and an index of its unwinding table.
///
/// # Safety
///
/// The description and the segments that it names must be mapped until the end of the process.
unsafe fn module(info: &dl_phdr_info) -> Option<Module> {
    // SAFETY: by the contract of this function.
    let segments = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let bias = info.dlpi_addr;
    let is_code = |segment: &&libc::Elf64_Phdr| segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_X != 0;
    let code = segments.iter().find(is_code)?;
    let of_kind = |kind| move |segment: &&libc::Elf64_Phdr| segment.p_type == kind;
    let index = segments.iter().find(of_kind(libc::PT_GNU_EH_FRAME))?;
    // SAFETY: by the contract of this function; the length is that in memory.
    let bytes = |address: u64, length: u64| unsafe { bytes(bias.wrapping_add(address), length) };
    let index = (index.p_vaddr, bytes(index.p_vaddr, index.p_memsz));
    let table = table_address(index)?;
    let holder = segments.iter().filter(of_kind(libc::PT_LOAD));
    let holder = holder.map(|segment| (segment.p_vaddr, segment.p_vaddr + segment.p_memsz));
    let (_, end) = holder.into_iter().find(|(start, end)| (*start..*end).contains(&table))?;
    let notes = segments.iter().filter(of_kind(libc::PT_NOTE));
    let build_id = notes.map(|note| bytes(note.p_vaddr, note.p_memsz)).find_map(build_id);
    // SAFETY: the loader passes a name that ends with 0, or none.
    let name = if info.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(info.dlpi_name) } };
    let path = match name.to_string_lossy() {
        // The binary itself has no name.
        name if name.is_empty() => std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
        name => PathBuf::from(&*name),
    };
    Some(Module {
        path,
        start: bias.wrapping_add(code.p_vaddr),
        end: bias.wrapping_add(code.p_vaddr + code.p_memsz),
        offset: code.p_offset,
        bias,
        build_id: build_id.unwrap_or_default(),
        index,
        table: (table, bytes(table, end - table)),
    })
}

/// Returns mapped memory.
///
/// # Safety
///
/// The range must be mapped for reading until the end of the process, and nobody may write to it.
unsafe fn bytes(address: u64, length: u64) -> &'static [u8] {
    let length = usize::try_from(length).unwrap_or_default();
    // SAFETY: by the contract of this function.
    unsafe { core::slice::from_raw_parts(address as *const u8, length) }
}

/// Reads the address of `.eh_frame` from its index (Linux Standard Base Core 5.0, 10.6.2). Linkers write it relative to
/// its own place, with four bytes.
fn table_address((address, bytes): (u64, &[u8])) -> Option<u64> {
    const VERSION: u8 = 1;
    const RELATIVE_I32: u8 = 0x1b;
    let ([VERSION, RELATIVE_I32, _, _], rest) = bytes.split_first_chunk::<4>()? else {
        return None;
    };
    let distance = i32::from_ne_bytes(*rest.first_chunk()?);
    (address + 4).checked_add_signed(distance.into())
}

/// Finds the build ID among notes: lengths of name and content, type, name and content, each padded to four bytes.
fn build_id(mut notes: &[u8]) -> Option<String> {
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let number = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let padded = |length: u32| usize::try_from(length).unwrap_or(usize::MAX).div_ceil(4).saturating_mul(4);
        let (name, rest) = rest.split_at_checked(padded(number(0)))?;
        let (content, rest) = rest.split_at_checked(padded(number(4)))?;
        if number(8) == BUILD_ID && name == b"GNU\0" {
            let length = usize::try_from(number(4)).unwrap_or_default();
            return Some(content.iter().take(length).map(|byte| format!("{byte:02x}")).collect());
        }
        notes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_this_program_with_its_code() {
        let modules = loaded();
        let here = lists_this_program_with_its_code as fn() as usize as u64;
        let own = modules.iter().find(|module| (module.start..module.end).contains(&here)).expect("this program");
        assert_eq!(own.path, std::env::current_exe().unwrap());
        assert!(own.index.1.len() > 100 && own.table.1.len() > own.index.1.len(), "{own:?}");
    }

    #[test]
    fn finds_the_build_id_behind_another_note() {
        let note = |kind: u32, name: &[u8], content: &[u8]| {
            let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
            let lengths = [length(name), length(content), kind].map(u32::to_ne_bytes).concat();
            let padded = |bytes: &[u8]| [bytes, &[0; 4][..(4 - bytes.len() % 4) % 4]].concat();
            [lengths, padded(name), padded(content)].concat()
        };
        let notes = [note(3, b"Xen\0", &[9; 5]), note(1, b"GNU\0", &[1, 2]), note(3, b"GNU\0", &[0xab, 1, 2])].concat();
        assert_eq!(build_id(&notes).as_deref(), Some("ab0102"));
        for length in 0..notes.len() - 4 {
            assert_eq!(build_id(&notes[..length]), None, "{length} bytes");
        }
    }
}
