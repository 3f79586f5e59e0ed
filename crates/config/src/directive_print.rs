//! Written form of a directive, for fingerprints of server blocks.

use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;

use corefile::Directive;

use crate::options::DirectiveTraits;

/// Written form of a directive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectivePrint {
    /// Hash of its name and of the words of its lines.
    pub(crate) words: u64,
    pub(crate) traits: DirectiveTraits,
}

impl DirectivePrint {
    pub(crate) fn new(lines: &[&Directive], traits: DirectiveTraits) -> DirectivePrint {
        let mut hasher = DefaultHasher::new();
        for line in lines {
            line.name.text.hash(&mut hasher);
            line.args.len().hash(&mut hasher);
            line.args.iter().for_each(|word| word.text.hash(&mut hasher));
            line.lines().len().hash(&mut hasher);
            for below in line.lines() {
                below.words.len().hash(&mut hasher);
                below.words.iter().for_each(|word| word.text.hash(&mut hasher));
            }
        }
        DirectivePrint { words: hasher.finish(), traits }
    }
}
