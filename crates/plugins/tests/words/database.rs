//! Statement `database PATH TYPE`: writes a small database in MaxMind's format with the networks 192.0.2.0/24 and
//! 2001:db8::/32.

#[path = "../../src/plugins/geoip/test_database.rs"]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod test_database;

use std::path::PathBuf;

use testkit::{Extension, Problem, Stage, Statement};

/// GeoIP database of a scenario.
pub(crate) struct Database;

impl Extension for Database {
    fn words(&self) -> &'static [&'static str] {
        &["database"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        let mut words = statement.words_between(1, usize::MAX);
        let path: PathBuf = words.parse("a path")?;
        stage.server.world.write(path, test_database::database(words.next_word().unwrap_or_default()));
        Ok(())
    }
}
