//! Positions of server blocks and directives in the Corefile.

use config::BlockOutline;
use control::explain::{Block, Place};
use corefile::{Sources, Span};
use engine::BlockId;

/// Server blocks, in the order of the generation's blocks.
#[derive(Default)]
pub struct Outline(Vec<OutlinedBlock>);

struct OutlinedBlock {
    block: Block,
    /// Names and positions.
    directives: Vec<(String, Place)>,
    sites: Vec<SiteLabels>,
}

/// Values of the metric labels `server`, `zone` and `view` of a server block.
pub(crate) type SiteLabels = [String; 3];

/// Returns the position of a span.
pub fn place(sources: &Sources, span: Span) -> Place {
    Place { file: sources.name(span.file).display().to_string(), line: u64::from(sources.line(span)) }
}

impl Outline {
    /// Finds the places of server blocks.
    pub fn new(outlines: &[BlockOutline], sources: &Sources) -> Outline {
        let place = |span: Span| place(sources, span);
        let outlined = |outline: &BlockOutline| {
            let keys: Vec<&str> = outline.keys.iter().map(|span| sources.slice(*span)).collect();
            let first = outline.keys.first().map_or_else(Place::default, |span| place(*span));
            OutlinedBlock {
                block: Block { keys: keys.join(" "), place: first },
                directives: outline
                    .directives
                    .iter()
                    .map(|span| (sources.slice(*span).to_owned(), place(*span)))
                    .collect(),
                sites: outline.sites.clone(),
            }
        };
        Outline(outlines.iter().map(outlined).collect())
    }

    /// Returns all server blocks with their ids.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        self.0.iter().enumerate().map(|(at, outlined)| (BlockId(at), &outlined.block))
    }

    pub(super) fn block(&self, BlockId(at): BlockId) -> Option<&Block> {
        self.0.get(at).map(|outlined| &outlined.block)
    }

    /// Returns the server block whose queries are counted with these labels.
    pub(crate) fn block_of(&self, labels: &SiteLabels) -> Option<BlockId> {
        self.0.iter().position(|outlined| outlined.sites.contains(labels)).map(BlockId)
    }

    /// Returns the position of a directive, by its index among those of the block.
    pub(super) fn directive(&self, BlockId(at): BlockId, order: usize) -> Option<&Place> {
        self.0.get(at)?.directives.get(order).map(|(_, place)| place)
    }

    /// Returns the position of the first directive with a name.
    pub(crate) fn first_directive(&self, BlockId(at): BlockId, name: &str) -> Option<&Place> {
        self.0.get(at)?.directives.iter().find(|(known, _)| known == name).map(|(_, place)| place)
    }
}
