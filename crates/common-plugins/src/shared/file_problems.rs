//! Problems of files that a directive follows, for people who look at the server from outside.

use std::sync::{Mutex, PoisonError};

use config::setup::InspectFiles;

/// Problems that a directive's last check of its files found. Only the check and the control API use the lock.
#[derive(Default)]
pub struct FileProblems(Mutex<Vec<String>>);

impl FileProblems {
    /// Replaces the problems.
    pub fn set(&self, problems: impl IntoIterator<Item = String>) {
        let problems = problems.into_iter().collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    }
}

impl InspectFiles for FileProblems {
    fn problems(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
