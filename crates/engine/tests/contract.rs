//! What the contract between engine and plugins can say: toy plugins, each with the hooks of a real one, and scenarios
//! that hold them to it.
//!
//! From top to bottom as in a real chain: `tally` (counts what comes by), `dns64`, `sign` (tsig), `rename` and
//! `rename_again` (rewrite), `autopath`, `fragile` (panics), `chase_above`, `stale` (cache), `chase` (follows CNAMEs), and two
//! directives of the testkit that answer. What was learned stands in `docs/decisions/0003-plugin-contract.md`.

#[path = "contract/autopath.rs"]
mod autopath;
#[path = "contract/chase.rs"]
mod chase;
#[path = "contract/dns64.rs"]
mod dns64;
#[path = "contract/fragile.rs"]
mod fragile;
#[path = "contract/rename.rs"]
mod rename;
#[path = "contract/stale.rs"]
mod stale;
#[path = "contract/tally.rs"]
mod tally;

use engine::Slot::{self, Here};

static SLOTS: [Slot; 11] = [
    Here(&tally::MANIFEST),
    Here(&dns64::MANIFEST),
    Here(&rename::RENAME),
    Here(&rename::RENAME_AGAIN),
    Here(&autopath::MANIFEST),
    Here(&fragile::MANIFEST),
    Here(&chase::CHASE_ABOVE),
    Here(&stale::MANIFEST),
    Here(&chase::CHASE),
    testkit::toys::RECORDS,
    testkit::toys::OUTWARD,
];

#[test]
fn scenarios() {
    testkit::run_directory(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract"), &SLOTS, &[]);
}
