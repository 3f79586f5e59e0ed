//! To whom an entry is shown: Istio's `exportTo`.

/// The namespaces that an entry is exported to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exports {
    /// To all.
    all: bool,
    /// To its own.
    own: bool,
    /// To these.
    namespaces: Box<[u64]>,
}

/// Namespaces that are kept of one list: the API server has no bound, and nobody writes so many by hand.
const NAMESPACES_MAX: usize = 1000;

impl Exports {
    /// To everybody: what holds where nobody says otherwise.
    #[must_use]
    pub fn everywhere() -> Exports {
        Exports { all: true, ..Exports::default() }
    }

    /// Reads a list: `*` is all, `.` the entry's own namespace, `~` none, anything else the name of one.
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

    /// Whether an entry of the namespace `own` is shown to a client in `namespace`, if that is known.
    pub(crate) fn reach(&self, own: u64, namespace: Option<u64>) -> bool {
        self.all || namespace.is_some_and(|asking| self.own && asking == own || self.namespaces.contains(&asking))
    }
}
