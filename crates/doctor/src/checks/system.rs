//! Process and machine.

use control::status::ProblemCode;
use control::text::{count, counted, duration};

use super::of_status;
use crate::known::known;
use crate::{Area, Certificate, Check, Evidence, Facts, Finding, Need, Outcome, Severity, Unknown};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "PD-T01",
        area: Area::System,
        title: "this machine and the API server have the same time",
        severity: Severity::Warning,
        needs: &[Need::Api],
        rights: &[],
        meaning: "Compares the clock with the header `Date` of the API server. Above 2 s, tokens and certificates may \
                  count as expired or not valid yet, and signatures with TSIG fail at 300 s.",
        fix: "Run NTP on the node: `chronyc tracking` shows its state",
        run: clock,
    },
    Check {
        code: "PD-T02",
        area: Area::System,
        title: "certificates are valid for two weeks or more",
        severity: Severity::Warning,
        needs: &[Need::Corefile, Need::Host],
        rights: &[],
        meaning: "Reads the certificates in the files that `tls` in the Corefile names. Run it in the Pod of the \
                  server, which has these files. An expired one is an error: encrypted clients, or the connection to \
                  the API server or etcd, fail.",
        fix: "Renew the certificate in its Secret. Listeners use changed files within a minute, and connections to \
              other servers after the next reload",
        run: certificates,
    },
    Check {
        code: "PD-T03",
        area: Area::System,
        title: "the kernel drops no queries of a full socket buffer",
        severity: Severity::Warning,
        needs: &[Need::Server],
        rights: &[],
        meaning: "Datagrams since the start that the kernel dropped because the server did not read them in time.",
        fix: "`sysctl -w net.core.rmem_max=8388608` on the node, more CPU, or more replicas",
        run: lost,
    },
    Check {
        code: "PD-T05",
        area: Area::System,
        title: "no limit that affects queries or updates was reached",
        severity: Severity::Warning,
        needs: &[Need::Server],
        rights: &[],
        meaning: "A limit that affects queries, or updates of *dynupdate*, was reached in the last ten minutes. Most \
                  have their name in `portolan_limit_hits_total`, and those of plugins in metrics of their own. Limits \
                  that cost no answer are left out, such as those on connections to the control API; \
                  `portolan status` shows them.",
        fix: "docs/runbooks/PortolanLimitHit.md describes each limit",
        run: limits,
    },
    Check {
        code: "PD-T06",
        area: Area::System,
        title: "the server does not refuse or fail many queries",
        severity: Severity::Warning,
        needs: &[Need::Server],
        rights: &[],
        meaning: "SERVFAIL or REFUSED are more than 5 % of at least 100 answers of the last minute, or many of the \
                  replies of an upstream. Health checks do not see such replies. Without *prometheus* in a server \
                  block, its answers are not counted.",
        fix: "`portolan tail --last 20` shows the names, the clients and the plugins of failed queries; `portolan \
              explain NAME --from CLIENT` shows why",
        run: failures,
    },
    Check {
        code: "PD-T07",
        area: Area::System,
        title: "the server did not crash in the last hour",
        severity: Severity::Warning,
        needs: &[Need::Server],
        rights: &[],
        meaning: "The keeper, the first process of the container, started the server again after a crash or a hang. \
                  Queries waited meanwhile; those in hand and those that waited for upstreams were lost. After five \
                  exits in a minute, the container ends.",
        fix: "`kubectl logs` has the line of the keeper, and before it what the server said last. Signal 9 is often \
              the memory limit. Report a crash (signals 6 and 11) as a bug, with these lines",
        run: restarts,
    },
];

/// Difference in seconds from which it is a finding. The header has whole seconds, and a request takes time.
const SKEW_MAX: f64 = 2.0;

fn clock(facts: &Facts) -> Outcome {
    let ahead = *known(&facts.api_clock_ahead)?;
    let word = if ahead > 0.0 { "behind" } else { "ahead of" };
    let finding = || Finding::new(format!("this machine is {} {word} the API server", duration(ahead.abs())));
    let evidence = Evidence::fact(format!("{} apart", duration(ahead.abs())));
    evidence.found((ahead.abs() > SKEW_MAX).then(finding))
}

fn limits(facts: &Facts) -> Outcome {
    let window = known(&facts.server)?.status.limits.window_seconds;
    Evidence::fact(format!("limits of the last {}", duration(window)))
        .found(of_status(facts, ProblemCode::LimitReached)?)
}

/// Number of answers below which a share says nothing, as for the status of the server.
const ANSWERS_MIN: u64 = 100;

fn failures(facts: &Facts) -> Outcome {
    let answers = &known(&facts.server)?.status.answers;
    let findings = of_status(facts, ProblemCode::AnswersFail)?;
    let total = answers.codes.iter().fold(0_u64, |total, code| total.saturating_add(code.answers));
    let text = format!("{} in {}", counted(total, "answer"), duration(answers.window_seconds));
    let uncounted = match (answers.per_second, answers.uncounted_blocks) {
        (None, _) => Some(Unknown::new("nothing counts answers: no server block has *prometheus*")),
        (_, 1..) => Some(Unknown::new("nothing counts the answers of server blocks without *prometheus*")),
        (Some(_), 0) if total < ANSWERS_MIN && findings.is_empty() => {
            return Err(Unknown::inapplicable(format!("only {text}")));
        }
        (Some(_), 0) => None,
    };
    Evidence::fact(text).without_all(uncounted).found(findings)
}

fn restarts(facts: &Facts) -> Outcome {
    let status = &known(&facts.server)?.status;
    let without = || Unknown::inapplicable("it runs without a keeper");
    let keeper = status.keeper.as_ref().ok_or_else(without)?;
    let text = format!("{} since the start of the keeper", counted(keeper.restarts, "restart"));
    Evidence::fact(text).found(of_status(facts, ProblemCode::Restarted)?)
}

fn lost(facts: &Facts) -> Outcome {
    let missing = || Unknown::new("the kernel does not count them here");
    let lost = known(&facts.server)?.status.answers.lost.ok_or_else(missing)?;
    let finding = || Finding::new(format!("{} queries dropped since the start", count(lost)));
    Evidence::fact("counters of the sockets").found((lost > 0).then(finding))
}

/// Time before its end in seconds from which a certificate is a finding.
const VALID_MIN: f64 = 14.0 * 86_400.0;

fn certificates(facts: &Facts) -> Outcome {
    let certificates = known(&facts.certificates)?;
    if certificates.is_empty() {
        return Err(Unknown::inapplicable("the Corefile names no certificates"));
    }
    Evidence::of(certificates.len(), "file")?.found(certificates.iter().filter_map(certificate))
}

fn certificate(certificate: &Certificate) -> Option<Finding> {
    let file = &certificate.file;
    match &certificate.expires_in {
        Err(reason) => Some(Finding::new(format!("{file}: {reason}"))),
        Ok(left) if *left < 0.0 => {
            let text = format!("{file} expired {} ago", duration(-left));
            Some(Finding::new(text).severity(Severity::Error))
        }
        Ok(left) => (*left < VALID_MIN).then(|| Finding::new(format!("{file} expires in {}", duration(*left)))),
    }
}
