//! Visibility of an entry: Istio's `exportTo`.

/// Namespaces that an entry is exported to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exports {
    /// All namespaces (`*`).
    all: bool,
    /// The entry's own namespace (`.`).
    own: bool,
    /// Keys of further namespaces.
    namespaces: Box<[u64]>,
}

/// Namespaces kept per list. The API server has no limit, and real lists are far shorter.
const NAMESPACES_MAX: usize = 1000;

impl Exports {
    /// Exports to all namespaces, the default.
    #[must_use]
    pub fn everywhere() -> Exports {
        Exports { all: true, ..Exports::default() }
    }

    /// Parses a list: `*` for all, `.` for the entry's own namespace, `~` for none, otherwise a namespace name.
    pub(crate) fn read<'a>(texts: impl IntoIterator<Item = &'a str>, key: impl Fn(&str) -> u64) -> Option<Exports> {
        let mut texts = texts.into_iter().take(NAMESPACES_MAX).peekable();
        texts.peek()?;
        let (mut exports, mut namespaces) = (Exports::default(), Vec::new());
        for text in texts {
            match text {
                "*" => exports.all = true,
                "." => exports.own = true,
                "~" => {}
                name => namespaces.push(key(name)),
            }
        }
        exports.namespaces = namespaces.into();
        Some(exports)
    }

    /// Returns true if an entry in the namespace `own` is visible to a client in `namespace` (`None` if unknown).
    pub(crate) fn reach(&self, own: u64, namespace: Option<u64>) -> bool {
        self.all || namespace.is_some_and(|asking| self.own && asking == own || self.namespaces.contains(&asking))
    }
}
