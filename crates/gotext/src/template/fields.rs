//! Finds the fields of its data that a template reads, so that misspelt ones are found before a query runs into them.
//!
//! `.Name` and `$.Name` read the data where the dot is the data itself. Within `with` and `range` the dot is another
//! value, and only
//! `$` is still the data.

use super::parse::{Base, Block, Node, Operand, Pipeline};

/// Returns the first field of every operand that starts at the data.
pub(super) fn of_root(nodes: &[Node]) -> Vec<&str> {
    let mut found = Vec::new();
    in_nodes(nodes, true, &mut found);
    found
}

/// `is_root` tells that the dot is the data.
fn in_nodes<'a>(nodes: &'a [Node], is_root: bool, found: &mut Vec<&'a str>) {
    for node in nodes {
        match node {
            Node::Text(_) | Node::Break | Node::Continue => {}
            Node::Action(pipeline) => in_pipeline(pipeline, is_root, found),
            Node::Template(_, pipeline) => pipeline.iter().for_each(|pipeline| in_pipeline(pipeline, is_root, found)),
            Node::If(block) => in_block(block, is_root, is_root, found),
            Node::With(block) | Node::Range(block) => in_block(block, is_root, false, found),
        }
    }
}

fn in_block<'a>(block: &'a Block, is_root: bool, keeps_dot: bool, found: &mut Vec<&'a str>) {
    in_pipeline(&block.on, is_root, found);
    in_nodes(&block.then, keeps_dot, found);
    in_nodes(&block.otherwise, is_root, found);
}

fn in_pipeline<'a>(pipeline: &'a Pipeline, is_root: bool, found: &mut Vec<&'a str>) {
    for Operand { base, fields } in pipeline.commands.iter().flatten() {
        let is_data = match base {
            Base::Dot => is_root,
            Base::Variable(name) => name.is_empty(),
            Base::Nested(nested) => {
                in_pipeline(nested, is_root, found);
                false
            }
            Base::Constant(_) | Base::Function(_) => false,
        };
        found.extend(fields.first().filter(|_| is_data).map(String::as_str));
    }
}
