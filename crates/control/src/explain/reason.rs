//! Codes of the reasons that do not come from a plugin.

/// Stable code of a reason. Plugins declare further ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A plugin answers.
    Answered,
    /// A plugin changed the question, and the answer is that of the changed one.
    Rewritten,
    /// The first name of the search path is answered.
    First,
    /// Earlier names of the search path do not exist.
    Waste,
    /// No name of the search path is answered.
    Nowhere,
    /// No server block serves the name.
    NoBlock,
    /// No plugin of the server block answers.
    NoPlugin,
    /// A plugin failed.
    Failed,
    /// A plugin refuses the query.
    Refused,
    /// A plugin drops the query.
    Dropped,
    /// A plugin denies the name.
    Denied,
    /// The server was asked, and no cache keeps the answer.
    Asked,
    /// The aliases of the name lead back to one of them.
    AliasLoop,
    /// The view of the cluster may be out of date.
    OldView,
    /// A subquery of a plugin would wait for an upstream.
    Waits,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 15] = [
        Code::Answered,
        Code::Rewritten,
        Code::First,
        Code::Waste,
        Code::Nowhere,
        Code::NoBlock,
        Code::NoPlugin,
        Code::Failed,
        Code::Refused,
        Code::Dropped,
        Code::Denied,
        Code::AliasLoop,
        Code::Asked,
        Code::OldView,
        Code::Waits,
    ];

    /// Returns the code.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Code::Answered => "PE-A01",
            Code::Denied => "PE-A02",
            Code::AliasLoop => "PE-A03",
            Code::Asked => "PE-A04",
            Code::Rewritten => "PE-A05",
            Code::First => "PE-S01",
            Code::Waste => "PE-S02",
            Code::Nowhere => "PE-S03",
            Code::NoBlock => "PE-B01",
            Code::NoPlugin => "PE-B02",
            Code::Failed => "PE-B03",
            Code::Refused => "PE-B04",
            Code::Dropped => "PE-B05",
            Code::Waits => "PE-B06",
            Code::OldView => "PE-V01",
        }
    }

    /// Returns the meaning in one sentence, without a full stop.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Code::Answered => "A plugin has the answer",
            Code::Denied => "The plugin that is responsible for the zone does not have the name or the type",
            Code::AliasLoop => {
                "The aliases (CNAME) of the name lead back to one of them, so the client gets no address"
            }
            Code::Asked => "`--fresh` asked the server, and no cache keeps the answer",
            Code::Rewritten => "*rewrite* changed the question, so the answer is that of another name or type",
            Code::First => "The first name of the search path is answered",
            Code::Waste => "Earlier names of the search path do not exist, so the client sends several queries",
            Code::Nowhere => "No name of the search path exists",
            Code::NoBlock => "No server block serves the name on this address",
            Code::NoPlugin => "The server block has no plugin that answers the name",
            Code::Failed => "A plugin failed",
            Code::Refused => "A plugin refuses the query",
            Code::Dropped => "A plugin drops the query, so the client waits in vain",
            Code::Waits => "A plugin needs the answer to another question first, which is that of an upstream",
            Code::OldView => "A watch of the API server fails, so objects that are newer than the failure are unknown",
        }
    }

    /// Returns what to do if something is wrong; empty otherwise.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Code::Waste => "dnsConfig ndots 2, a dot at the end of the name, or autopath in the Corefile",
            Code::Nowhere => "Check the name",
            Code::NoBlock => "Add a server block for the zone, or check the port",
            Code::NoPlugin => "Add a plugin that answers, such as forward",
            Code::Failed => "The text has the cause; `errors` in the Corefile logs it",
            Code::Refused | Code::Dropped => "Check the rules of the plugin",
            Code::Rewritten => "If clients should get the answer of the name itself, change the rule of rewrite",
            Code::AliasLoop => "Correct one of the aliases",
            Code::Asked => "If it is a failure, see `portolan status` for the errors of the upstreams",
            Code::OldView => "See `portolan status` for the error of the watch",
            Code::Answered | Code::Denied | Code::First | Code::Waits => "",
        }
    }
}
