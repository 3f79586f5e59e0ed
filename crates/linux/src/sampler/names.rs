//! Names of functions, from the symbol tables of the modules.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use object::read::ReadCache;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::sampler::modules::Module;

/// Names of functions by address.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<u64, Option<String>>);

impl Names {
    /// Looks up the functions that contain the addresses. Reads the symbol table of each module that has one of them,
    /// and from the file only the names that are wanted: about 2 MiB for a release build. It takes tens of
    /// milliseconds, so call it on a thread that may block.
    #[must_use]
    pub fn look_up(modules: &[Module], addresses: impl IntoIterator<Item = u64>) -> Names {
        let mut names = Names(addresses.into_iter().map(|address| (address, None)).collect());
        for module in modules {
            names.look_up_in(module);
        }
        names
    }

    /// Returns the name of the function that contains an address. Unknown in a file without a symbol table.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        self.0.get(&address)?.as_deref()
    }

    #[expect(clippy::disallowed_methods, reason = "the files of the running program, not of a configuration")]
    fn look_up_in(&mut self, module: &Module) -> Option<()> {
        self.0.range(module.start..module.end).next()?;
        let path = &module.path;
        // The file of a running binary may have been replaced; this link leads to the one that runs.
        let is_own = std::env::current_exe().is_ok_and(|own| own == *path);
        let file = File::open(if is_own { Path::new("/proc/self/exe") } else { path }).ok()?;
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache).ok()?;
        let mut symbols: Vec<_> = elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text).collect();
        if symbols.is_empty() {
            symbols = elf.dynamic_symbols().filter(|symbol| symbol.kind() == SymbolKind::Text).collect();
        }
        symbols.sort_unstable_by_key(ObjectSymbol::address);
        for (address, name) in self.0.range_mut(module.start..module.end) {
            let address = address - module.bias;
            let after = symbols.partition_point(|symbol| symbol.address() <= address);
            let symbol = symbols[..after].last();
            // Assembly has symbols of size 0.
            let symbol = symbol.filter(|symbol| symbol.size() == 0 || address - symbol.address() < symbol.size());
            *name = symbol
                .and_then(|symbol| symbol.name().ok())
                .map(|name| format!("{:#}", rustc_demangle::demangle(name)));
        }
        Some(())
    }
}
