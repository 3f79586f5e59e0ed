//! Binary of the server for one architecture.

use std::path::Path;

use crate::Failed;
use crate::binary::KEEPER;

/// Offset of the type of machine in an ELF header, and values for it (elf.h).
const MACHINE_AT: usize = 18;
const X86_64: u16 = 62;
const AARCH64: u16 = 183;
/// Program header that names the dynamic loader (elf.h, PT_INTERP).
const PT_INTERP: u32 = 3;
/// Size of a program header in an ELF file with 64 bits.
const PROGRAM_HEADER_SIZE: usize = 56;

/// Static binary.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Name of the architecture, as Go and OCI have it: `amd64`.
    pub architecture: &'static str,
    /// File.
    pub bytes: Vec<u8>,
    /// File of the keeper, if the binary is the server.
    pub keeper: Option<Vec<u8>>,
}

impl Binary {
    /// Reads a binary and checks that it needs no dynamic loader, which an image without a distribution does not have.
    pub fn read(path: &Path) -> Result<Binary, Failed> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Binary::new(bytes).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    /// Reads the server, and the keeper beside it.
    pub fn read_with_keeper(path: &Path) -> Result<Binary, Failed> {
        let server = Binary::read(path)?;
        let keeper = Binary::read(&path.with_file_name(KEEPER))
            .map_err(|error| format!("{error}; `cargo xtask binary` builds the server and its keeper"))?;
        if keeper.architecture != server.architecture {
            let (path, found, wanted) = (path.display(), keeper.architecture, server.architecture);
            return Err(format!("{path} is for {wanted}, but {KEEPER} beside it is for {found}"));
        }
        Ok(Binary { keeper: Some(keeper.bytes), ..server })
    }

    /// Checks the bytes of a binary.
    pub fn new(bytes: Vec<u8>) -> Result<Binary, Failed> {
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return Err("not an ELF binary with 64 bits, least significant byte first".to_owned());
        }
        let architecture = match number::<2>(&bytes, MACHINE_AT).map(u16::from_le_bytes) {
            Some(X86_64) => "amd64",
            Some(AARCH64) => "arm64",
            other => return Err(format!("ELF machine {other:?}; the supported ones are x86_64 and aarch64")),
        };
        if has_loader(&bytes).ok_or("the ELF file ends within its program headers")? {
            return Err(
                "the binary is linked dynamically, but an image has no libraries; `cargo xtask image` without \
                        --binary builds a static one"
                    .to_owned(),
            );
        }
        Ok(Binary { architecture, bytes, keeper: None })
    }
}

/// Returns true if the file names a dynamic loader; `None` if it ends too early.
fn has_loader(bytes: &[u8]) -> Option<bool> {
    let start = usize::try_from(u64::from_le_bytes(number(bytes, 32)?)).ok()?;
    let count = usize::from(u16::from_le_bytes(number(bytes, 56)?));
    for index in 0..count {
        let at = start.checked_add(index * PROGRAM_HEADER_SIZE)?;
        if u32::from_le_bytes(number(bytes, at)?) == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}
