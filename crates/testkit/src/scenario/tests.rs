use super::*;

use crate::toys::{OUTWARD, RECORDS};

fn run(text: &str) -> Vec<Problem> {
    run_text(text, Directives::new(Box::leak(Box::new([RECORDS, OUTWARD]))), &[|| Box::new(Counting(0))])
}

/// Runs a scenario and returns its problems as text.
fn problems(text: &str) -> String {
    run(text).iter().map(|problem| format!("{}: {}\n", problem.line, problem.text)).collect()
}

/// Extension with the statements `count` and `counted N`.
struct Counting(usize);

impl Extension for Counting {
    fn words(&self) -> &'static [&'static str] {
        &["count", "counted"]
    }

    fn play(&mut self, statement: &Statement, _: &mut Stage) -> Result<(), Problem> {
        if statement.word() == "count" {
            self.0 += 1;
            return Ok(());
        }
        let expected = statement.parse(statement.words().nth(1), "a number")?;
        statement.expect("count", &expected, &self.0)
    }
}

const TWO_RECORDS: &str = "\
corefile
    example.org {
        records {
            www.example.org. 30 IN A 192.0.2.1
            www.example.org. 30 IN A 192.0.2.2
        }
    }
";

#[test]
fn passes_if_all_expectations_are_met() {
    let text = "
ask Www.example.org A do cd from 192.0.2.9
    NOERROR aa rd cd
    www.example.org. 30 IN A 192.0.2.2
    Www.example.org. 30 IN A 192.0.2.1
";
    // The owner has the letter case of the question.
    let text = format!("{TWO_RECORDS}{}", text.replace("    www.ex", "    Www.ex"));
    assert_eq!(problems(&text), "");
    assert_eq!(problems("count\ncount\ncounted 2\n"), "");
}

#[test]
fn shows_differences_side_by_side() {
    let text = format!(
        "{TWO_RECORDS}
ask www.example.org. A
    NOERROR aa rd ra
    www.example.org. 30 IN A 192.0.2.2
    www.example.org. 30 IN A 192.0.2.3
    ede 3
ask www.example.org. TXT
    silence
"
    );
    let expected = "\
9: the answer is not as expected
      expected                             got
    ! NOERROR aa rd ra                   | NOERROR aa rd
      www.example.org. 30 IN A 192.0.2.2 | www.example.org. 30 IN A 192.0.2.2
    ! www.example.org. 30 IN A 192.0.2.3 |
    !                                    | www.example.org. 30 IN A 192.0.2.1
    ! ede 3 …                            |

14: the answer is not as expected
      expected   got
    ! silence  | NOERROR aa rd

";
    assert_eq!(problems(&text), expected);
}

#[test]
fn upstreams_react_as_their_table_says() {
    let text = "
corefile
    . {
        outward 192.0.2.53
    }
upstream 192.0.2.53 delay 100ms
    www.example.org. A once
        NOERROR aa ra
        www.example.org. 30 IN A 192.0.2.1
    *.example.org. A truncated delay 0s
        NOERROR ra
        www.example.org. 30 IN A 192.0.2.2
    lost.test. * silence
    slow.test. A delay 3s
        NOERROR
    refused.test. A refused
    closed.test. A closed
    broken.test. A overflow
ask www.example.org. A do
    NOERROR aa rd ra
    www.example.org. 30 IN A 192.0.2.1
    took 100ms
ask www.example.org. A noedns
    NOERROR rd ra
    www.example.org. 30 IN A 192.0.2.2
    took 0s
upstream 192.0.2.53 asked 3
    udp www.example.org. A rd edns 1232 do
    udp www.example.org. A rd
    tcp www.example.org. A
ask lost.test. A
    SERVFAIL rd
    ede 22
    took 2s
ask slow.test. A
    SERVFAIL rd
    ede 22
    took 2s
ask refused.test. A
    SERVFAIL rd
    ede 22
ask closed.test. A
    SERVFAIL rd
    ede 22
ask broken.test. A
    SERVFAIL rd
    ede 24
ask other.test. A
    REFUSED rd
    ede 22 the upstream answered REFUSED
upstream 192.0.2.53 asked 6
";
    assert_eq!(problems(text), "");
}

#[test]
fn answers_arrive_after_the_delay_of_the_upstream() {
    let text = "
corefile
    . {
        outward 192.0.2.53
    }
upstream 192.0.2.53
    a.test. A delay 1500ms
        NOERROR
ask a.test. A as first
after 1s
pending first
upstream 192.0.2.53
    a.test. A
        NXDOMAIN
ask a.test. AAAA as second
after 501ms
answer second
    REFUSED rd
    ede 22 the upstream answered REFUSED
    took 0s
answer first
    NOERROR rd
    took 1500ms
";
    assert_eq!(problems(text), "");
}

#[test]
fn reports_mistakes_with_their_line() {
    for (text, problem) in [
        ("  ask", "1: indented line without a statement above it\n"),
        ("\nfoo\n", "2: unknown statement `foo`\n"),
        ("ask a. A\n  NOERROR xx\n", "2: `xx` is not a flag; the flags are aa, tc, rd, ra, ad and cd\n"),
        ("ask a. A\n  NOERROR rd\n  a. IN A 192.0.2.1\n", "3: `a. IN A 192.0.2.1`: invalid TTL: `IN`\n"),
        ("ask a. A loudly\n", "1: unknown word `loudly` for a query\n"),
        ("ask a..b A\n", "1: `a..b` is not a name\n"),
        ("ask a. A as x\n", "1: queries without a check: x\n"),
        ("answer x\n", "1: no query has the label `x`\n"),
        (
            "upstream 192.0.2.53\n  a. A\n",
            "2: either an answer below, or one of silence, refused, closed, broken, status\n",
        ),
        ("after 1\n", "1: expected a duration such as `30s`\n"),
        ("metric up 1\n", "1: expected 1, got 0; similar series:\n"),
        ("log x\n", "1: no line of the log contains `x`:\n"),
        ("page :80 / 200\n", "1: there is no page / at :80\n"),
        ("counted 1\n", "1: count: expected 1, got 0\n"),
        ("raw 12z\n", "1: unknown word `12z` for a query\n"),
    ] {
        assert_eq!(problems(text), problem, "{text}");
    }
    assert!(problems("corefile\n  . {\n    recorsd\n  }\n").contains("did you mean `records`?"));
}

#[test]
fn failed_reload_keeps_the_previous_corefile() {
    let text = format!(
        "{TWO_RECORDS}
corefile fails
    example.org {{
        records {{
            www.example.org. 30 IN A 192.0.2
        }}
    }}
problem invalid IPv4 address: `192.0.2`
ask www.example.org. A
    NOERROR aa rd
    www.example.org. 30 IN A 192.0.2.1
    www.example.org. * IN A 192.0.2.2
corefile
    example.net {{
        records {{
            www.example.net. 30 IN TXT \"a text\" b
        }}
    }}
ask www.example.org. A
    REFUSED rd
    ede 20
ask www.example.net. TXT
    NOERROR aa rd
    www.example.net. 30 IN TXT \"a text\" \"b\"
"
    );
    assert_eq!(problems(&text), "");
}
