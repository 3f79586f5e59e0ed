//! Positions of server blocks and directives in the Corefile.

use config::BlockOutline;
use control::explain::{Block, Place};
use corefile::{Sources, Span};
use engine::BlockId;

/// Server blocks, in the order of the generation's blocks.
#[derive(Default)]
pub(crate) struct Outline(Vec<OutlinedBlock>);

struct OutlinedBlock {
    block: Block,
    directives: Vec<Place>,
}

impl Outline {
    pub(crate) fn new(outlines: &[BlockOutline], sources: &Sources) -> Outline {
        let place = |span: Span| Place {
            file: sources.name(span.file).display().to_string(),
            line: u64::from(sources.line(span)),
        };
        let outlined = |outline: &BlockOutline| {
            let keys: Vec<&str> = outline.keys.iter().map(|span| sources.slice(*span)).collect();
            let first = outline.keys.first().map_or_else(Place::default, |span| place(*span));
            OutlinedBlock {
                block: Block { keys: keys.join(" "), place: first },
                directives: outline.directives.iter().map(|span| place(*span)).collect(),
            }
        };
        Outline(outlines.iter().map(outlined).collect())
    }

    pub(super) fn block(&self, BlockId(at): BlockId) -> Option<&Block> {
        self.0.get(at).map(|outlined| &outlined.block)
    }

    /// Returns the position of a directive, by its index among those of the block.
    pub(super) fn directive(&self, BlockId(at): BlockId, order: usize) -> Option<&Place> {
        self.0.get(at)?.directives.get(order)
    }
}
