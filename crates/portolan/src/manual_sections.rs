//! Sections of man pages that clap does not know: the exit status, and examples.

/// Sections of the page of a command.
pub(crate) struct Sections {
    /// Words of the command without the name of the program; empty for the program.
    pub(crate) command: &'static str,
    /// Exit codes with their meaning.
    pub(crate) exits: &'static [(u8, &'static str)],
    /// What examples do, and their command lines.
    pub(crate) examples: &'static [(&'static str, &'static str)],
}

/// Exit codes of commands that only ask a server.
const ASKED: &[(u8, &str)] = &[(0, "The server was asked."), (2, "The server could not be asked.")];
/// Exit codes of commands that may ask several servers.
const ASKED_ALL: &[(u8, &str)] = &[
    (0, "The server, or every replica, was asked."),
    (2, "No server could be asked."),
    (3, "With --all, a replica could not be asked."),
];
/// Exit codes of a server.
const SERVED: &[(u8, &str)] = &[
    (0, "A signal ended the process, after it had answered what was on the way."),
    (1, "The server could not start, or ended with an error."),
    (2, "The command line is wrong."),
];
/// Exit codes of commands that print a text.
const PRINTED: &[(u8, &str)] = &[(0, "The text was printed."), (2, "There is no such text.")];

/// Returns the sections of the page of a command.
pub(crate) fn of(command: &str) -> Option<&'static Sections> {
    SECTIONS.iter().find(|sections| sections.command == command)
}

/// All pages.
pub(crate) static SECTIONS: &[Sections] = &[
    Sections {
        command: "",
        exits: SERVED,
        examples: &[
            ("Serve a Corefile, on port 1053 where it names no port", "portolan -conf Corefile -dns.port 1053"),
            ("Print the plugins of this build", "portolan -plugins"),
        ],
    },
    Sections {
        command: "check",
        exits: &[
            (0, "The Corefile has no error."),
            (1, "The Corefile has an error, or, with --strict, a warning."),
            (2, "The Corefile could not be read."),
        ],
        examples: &[
            ("Check a Corefile with the files that it names", "portolan check --files Corefile"),
            (
                "Check if CoreDNS would start with the Corefile of a ConfigMap",
                "portolan check --for coredns coredns.yaml",
            ),
            ("Explain a code", "portolan check --explain chain/never-asked"),
        ],
    },
    Sections {
        command: "conformance",
        exits: &[(0, "All checks passed."), (1, "A check failed."), (2, "The checks could not run.")],
        examples: &[
            (
                "Test the cluster DNS, with objects in a temporary namespace",
                "portolan conformance --kubeconfig .kube/config --server 10.96.0.10",
            ),
            ("Print the objects for a server without a cluster", "portolan conformance --print-manifests"),
        ],
    },
    Sections {
        command: "migrate",
        exits: &[
            (0, "All settings are kept, or all answers are equal."),
            (1, "A setting has no equivalent, the result is not valid, or answers differ."),
            (2, "The input could not be used, or a server does not answer."),
        ],
        examples: &[
            ("Convert an older Corefile", "portolan migrate --from 1.6.9 Corefile"),
            (
                "Compare the answers of two servers to the names of all Services",
                "portolan migrate --check 10.244.1.2 10.244.1.3 services.yaml",
            ),
        ],
    },
    Sections {
        command: "status",
        exits: &[
            (0, "There is no problem."),
            (1, "There is a problem."),
            (2, "No server could be asked."),
            (3, "With --all, a replica could not be asked."),
        ],
        examples: &[
            ("Wait for a deployment", "portolan status --wait 60s"),
            ("Show all replicas of the cluster DNS", "portolan status --all"),
        ],
    },
    Sections {
        command: "ready",
        exits: &[
            (0, "All directives are ready."),
            (1, "A directive is not ready."),
            (2, "The server could not be asked."),
        ],
        examples: &[("Ask a server by its socket", "portolan ready --socket /run/portolan/control.sock")],
    },
    Sections {
        command: "explain",
        exits: &[
            (0, "The name has records, or the answer is that of an upstream that may work."),
            (1, "The name has no answer, or is that of a Service with an address and no ready endpoint (PE-K14)."),
            (2, "The server could not be asked."),
            (3, "The answer depends on an address of the client that is not known."),
        ],
        examples: &[
            ("Explain what a Pod gets for a short name", "portolan explain web --from shop/db-0"),
            (
                "Explain without a server",
                "portolan explain web.shop.svc.cluster.local. --conf Corefile --manifests cluster.yaml",
            ),
        ],
    },
    Sections {
        command: "cache",
        exits: ASKED,
        examples: &[("Show what is cached for a name", "portolan cache get www.example.org A")],
    },
    Sections {
        command: "cache get",
        exits: &[
            (0, "There are cached responses."),
            (1, "There is no cached response."),
            (2, "The server could not be asked."),
        ],
        examples: &[("Show what is cached for a name", "portolan cache get www.example.org A")],
    },
    Sections {
        command: "cache flush",
        exits: ASKED,
        examples: &[("Remove a name and all names below it", "portolan cache flush --below example.org")],
    },
    Sections {
        command: "reload",
        exits: &[
            (0, "The Corefile is loaded."),
            (1, "The Corefile is refused, and the old configuration serves."),
            (2, "The server could not be asked."),
        ],
        examples: &[("Load the Corefile now", "portolan reload")],
    },
    Sections { command: "loglevel", exits: ASKED, examples: &[("Show the levels", "portolan loglevel")] },
    Sections {
        command: "requests",
        exits: &[
            (0, "No query waits for longer than a second."),
            (1, "A query waits for longer than a second."),
            (2, "The server could not be asked."),
        ],
        examples: &[("List the queries that wait", "portolan requests")],
    },
    Sections {
        command: "shadow",
        exits: ASKED,
        examples: &[("Show the differences to the old server", "portolan shadow report")],
    },
    Sections {
        command: "shadow report",
        exits: &[(0, "No answer differs."), (1, "Answers differ."), (2, "The server could not be asked.")],
        examples: &[("Show the differences to the old server", "portolan shadow report")],
    },
    Sections {
        command: "tail",
        exits: ASKED_ALL,
        examples: &[
            ("Show the last failures", "portolan tail --last 20"),
            ("Show the SERVFAIL answers to a namespace as they happen", "portolan tail --rcode SERVFAIL -n shop"),
            ("Show the last failures of all replicas", "portolan tail --all --last 20"),
        ],
    },
    Sections {
        command: "top",
        exits: ASKED_ALL,
        examples: &[
            ("Show the names with most queries once", "portolan top --by name --once"),
            ("Show the groups of all replicas", "portolan top --all"),
        ],
    },
    Sections { command: "report", exits: ASKED, examples: &[("Write a report for an issue", "portolan report")] },
    Sections {
        command: "doctor",
        exits: &[
            (0, "All is well."),
            (1, "There is a finding."),
            (2, "Nothing could be looked at, or an option cannot be used."),
            (3, "There is no finding, and something that matters could not be looked at."),
        ],
        examples: &[
            ("Check everything that can be seen from here", "portolan doctor"),
            ("Check from outside of the cluster", "portolan doctor --kubeconfig .kube/config"),
            ("Check the upstreams only", "portolan doctor --only upstream"),
        ],
    },
    Sections {
        command: "kube-dns",
        exits: SERVED,
        examples: &[("Print the Corefile for the flags", "portolan kube-dns --domain=cluster.local. --print-corefile")],
    },
    Sections {
        command: "node",
        exits: SERVED,
        examples: &[(
            "Serve the addresses of NodeLocal DNSCache",
            "portolan node -localip 169.254.20.10,10.96.0.10 -conf /etc/coredns/Corefile",
        )],
    },
    Sections {
        command: "relay",
        exits: SERVED,
        examples: &[(
            "Serve the nodes of the cluster in whose Pod it runs",
            "portolan relay --certificate /tls/tls.crt --key /tls/tls.key --keys-file /var/lib/portolan/keys.json",
        )],
    },
    Sections {
        command: "completions",
        exits: PRINTED,
        examples: &[("Print the script for zsh", "portolan completions zsh")],
    },
    Sections { command: "man", exits: PRINTED, examples: &[("Print a man page in roff", "portolan man cache get")] },
];
