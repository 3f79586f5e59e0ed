use std::path::Path;

use wire::{Header, MessageBuf, Name, Rcode, Section, Type};

use super::Question;
use crate::{Zone, load};

const ZONE: &str = "$TTL 60
@ SOA ns host 1 2 3 4 5
@ NS ns
ns A 192.0.2.1
www A 192.0.2.2
*.w A 192.0.2.3
*.w TXT w
sub.w TXT closer
a.ent TXT e
cut NS ns.cut
cut DS 1 8 2 00
ns.cut A 192.0.2.4
under.ns.cut A 192.0.2.5
d DNAME t
x.t A 192.0.2.6
alias CNAME www
far CNAME far.test.
*.c CNAME x.t
one CNAME two
two CNAME one
*.round CNAME x.round
*.near CNAME one
f DNAME f
g DNAME h
h DNAME g
self CNAME Self
toself CNAME self
*.pair CNAME x.pair2
*.pair2 CNAME y.pair3
*.pair3 CNAME www
*.turn CNAME x.turn2
*.turn2 CNAME x.turn
twice DNAME @
grow DNAME grow.grow
long DNAME aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
again DNAME turned
*.turned CNAME again
svc HTTPS 1 .
svc AAAA 2001:db8::1
";

fn zone(text: &str) -> Zone {
    let origin = Name::from_text("z.test.").unwrap();
    load(origin.as_ref(), Path::new("z"), &mut |_| Ok(text.as_bytes().to_vec())).unwrap().zone
}

/// Summarizes the answer: response code, `aa`, owner and type of each section's records, and the target outside the
/// zone.
fn ask(zone: &Zone, name: &str, qtype: Type, dnssec_ok: bool) -> String {
    let name = Name::from_text(name).unwrap();
    let mut message = MessageBuf::new();
    message.start(Header::default(), Some((name.as_ref(), qtype, wire::Class::IN)));
    let reply = zone.answer(Question { name: name.as_ref(), qtype, dnssec_ok }, &mut message);
    let Some(reply) = reply else { return "outside".to_owned() };
    let mut text = if reply.rcode == Rcode::NOERROR { String::new() } else { reply.rcode.to_string() };
    text.push_str(if reply.authoritative { " aa" } else { "" });
    for section in Section::ALL {
        text.push_str(" |");
        for mark in message.section(section) {
            let owner = message.owner(mark).unwrap().to_string();
            text.push_str(&format!(" {} {}", owner.trim_end_matches(".z.test."), mark.rtype));
        }
    }
    if let Some(next) = reply.next {
        text.push_str(&format!(" -> {next}"));
    }
    text.trim().to_owned()
}

#[test]
fn answers_by_name_and_type() {
    let zone = zone(ZONE);
    for (name, qtype, wanted) in [
        ("www.z.test.", Type::A, "aa | www A | z.test. NS |"),
        ("WWW.Z.test.", Type::A, "aa | WWW.Z.test. A | z.test. NS |"),
        ("www.z.test.", Type::TXT, "aa | | z.test. SOA |"),
        ("z.test.", Type::NS, "aa | z.test. NS | | ns A"),
        ("nothing.z.test.", Type::A, "NXDOMAIN aa | | z.test. SOA |"),
        ("ent.z.test.", Type::A, "aa | | z.test. SOA |"),
        ("b.ent.z.test.", Type::A, "NXDOMAIN aa | | z.test. SOA |"),
        ("a.w.z.test.", Type::A, "aa | a.w A | z.test. NS |"),
        ("b.a.w.z.test.", Type::TXT, "aa | b.a.w TXT | z.test. NS |"),
        ("a.w.z.test.", Type::MX, "aa | | z.test. SOA |"),
        ("sub.w.z.test.", Type::A, "aa | | z.test. SOA |"),
        ("a.sub.w.z.test.", Type::A, "NXDOMAIN aa | | z.test. SOA |"),
        ("w.z.test.", Type::A, "aa | | z.test. SOA |"),
        ("cut.z.test.", Type::A, "| | cut NS | ns.cut A"),
        ("cut.z.test.", Type::DS, "aa | cut DS | z.test. NS |"),
        ("a.cut.z.test.", Type::DS, "| | cut NS | ns.cut A"),
        ("under.ns.cut.z.test.", Type::A, "| | cut NS | ns.cut A"),
        ("x.d.z.test.", Type::A, "aa | d DNAME x.d CNAME x.t A | z.test. NS |"),
        ("y.d.z.test.", Type::A, "NXDOMAIN aa | d DNAME y.d CNAME | z.test. SOA |"),
        ("d.z.test.", Type::A, "aa | | z.test. SOA |"),
        ("d.z.test.", Type::DNAME, "aa | d DNAME | z.test. NS |"),
        (
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.long.z.test.",
            Type::A,
            "YXDOMAIN aa | long DNAME | |",
        ),
        ("alias.z.test.", Type::A, "aa | alias CNAME www A | z.test. NS |"),
        ("alias.z.test.", Type::CNAME, "aa | alias CNAME | z.test. NS |"),
        ("alias.z.test.", Type::MX, "aa | alias CNAME | z.test. SOA |"),
        ("far.z.test.", Type::A, "aa | far CNAME | | -> far.test."),
        ("a.c.z.test.", Type::A, "aa | a.c CNAME x.t A | z.test. NS |"),
        ("one.z.test.", Type::A, "aa | one CNAME two CNAME | z.test. NS |"),
        ("one.z.test.", Type::NS, "SERVFAIL aa | one CNAME two CNAME | z.test. NS |"),
        ("a.round.z.test.", Type::A, "SERVFAIL aa | a.round CNAME x.round CNAME | z.test. NS |"),
        ("x.round.z.test.", Type::A, "SERVFAIL aa | x.round CNAME | z.test. NS |"),
        ("self.z.test.", Type::A, "SERVFAIL | | |"),
        ("SELF.z.test.", Type::NS, "SERVFAIL | | |"),
        ("self.z.test.", Type::CNAME, "aa | self CNAME | z.test. NS |"),
        ("toself.z.test.", Type::A, "SERVFAIL | | |"),
        ("a.round.z.test.", Type::CNAME, "aa | a.round CNAME | z.test. NS |"),
        ("a.near.z.test.", Type::A, "aa | a.near CNAME one CNAME two CNAME | z.test. NS |"),
        ("x.f.z.test.", Type::A, "aa | f DNAME x.f CNAME | z.test. NS |"),
        ("X.f.z.test.", Type::CNAME, "aa | f DNAME X.f CNAME | z.test. NS |"),
        ("x.f.z.test.", Type::NS, "aa | f DNAME x.f CNAME | z.test. NS |"),
        ("f.z.test.", Type::DNAME, "aa | f DNAME | z.test. NS |"),
        ("x.g.z.test.", Type::A, "SERVFAIL aa | g DNAME x.g CNAME h DNAME x.h CNAME | z.test. NS |"),
        ("b.again.z.test.", Type::DNAME, "aa | again DNAME b.again CNAME b.turned CNAME | z.test. NS |"),
        ("w.z.test.", Type::ANY, "aa | | z.test. SOA |"),
        ("a.w.z.test.", Type::ANY, "aa | a.w A | z.test. NS |"),
        ("alias.z.test.", Type::ANY, "aa | alias CNAME | z.test. NS |"),
        ("self.z.test.", Type::ANY, "aa | self CNAME | z.test. NS |"),
        ("cut.z.test.", Type::ANY, "| | cut NS | ns.cut A"),
        ("nothing.z.test.", Type::ANY, "NXDOMAIN aa | | z.test. SOA |"),
        ("svc.z.test.", Type::HTTPS, "aa | svc HTTPS | z.test. NS | svc AAAA"),
        ("test.", Type::A, "outside"),
        ("az.test.", Type::A, "outside"),
    ] {
        assert_eq!(ask(&zone, name, qtype, false), wanted, "{name} {qtype}");
    }
}

/// Zone with dummy signatures: the tests check only which signatures are returned.
const SIGNED: &str = "$TTL 60
@ SOA ns host 1 2 3 4 5
@ RRSIG SOA 13 2 60 0 0 1 @ AA==
@ NS ns
@ RRSIG NS 13 2 60 0 0 1 @ AA==
@ NSEC a NS SOA
a A 192.0.2.2
a RRSIG A 13 2 60 0 0 1 @ AA==
a RRSIG NSEC 13 2 60 0 0 1 @ AA==
a NSEC cut A
b.e TXT x
b.e NSEC safe TXT
cut NS ns.cut
cut NSEC b.e NS
ns.cut A 192.0.2.4
safe NS ns.cut
safe DS 1 8 2 00
safe NSEC *.w NS DS
*.w A 192.0.2.3
*.w NSEC z A
z CNAME q.w
z NSEC @ CNAME
";

#[test]
fn adds_signatures_and_proofs_of_nonexistence() {
    let zone = zone(SIGNED);
    for (name, qtype, wanted) in [
        ("a.z.test.", Type::A, "aa | a A a RRSIG | z.test. NS z.test. RRSIG |"),
        ("a.z.test.", Type::MX, "aa | | z.test. SOA z.test. RRSIG a NSEC a RRSIG |"),
        ("e.z.test.", Type::MX, "aa | | z.test. SOA z.test. RRSIG cut NSEC |"),
        ("aa.z.test.", Type::A, "NXDOMAIN aa | | z.test. SOA z.test. RRSIG a NSEC a RRSIG z.test. NSEC |"),
        ("d.z.test.", Type::A, "NXDOMAIN aa | | z.test. SOA z.test. RRSIG cut NSEC z.test. NSEC |"),
        ("x.cut.z.test.", Type::A, "| | cut NS cut NSEC | ns.cut A"),
        ("x.safe.z.test.", Type::A, "| | safe NS safe DS | ns.cut A"),
        ("q.w.z.test.", Type::A, "aa | q.w A | z.test. NS z.test. RRSIG *.w NSEC |"),
        ("q.w.z.test.", Type::MX, "aa | | z.test. SOA z.test. RRSIG *.w NSEC |"),
        ("z.z.test.", Type::A, "aa | z CNAME q.w A | z.test. NS z.test. RRSIG *.w NSEC |"),
        ("a.z.test.", Type::NSEC, "aa | a NSEC a RRSIG | z.test. NS z.test. RRSIG |"),
        ("a.z.test.", Type::RRSIG, "aa | a RRSIG a RRSIG | z.test. NS z.test. RRSIG |"),
    ] {
        assert_eq!(ask(&zone, name, qtype, true), wanted, "{name} {qtype}");
    }
    assert_eq!(ask(&zone, "a.z.test.", Type::A, false), "aa | a A | z.test. NS |");
    assert_eq!(ask(&zone, "d.z.test.", Type::A, false), "NXDOMAIN aa | | z.test. SOA |");
}

/// Zone with wildcard aliases to each kind of target. Each name but `cut`'s glue has an NSEC record.
const WILD: &str = "$TTL 60
@ SOA ns host 1 2 3 4 5
@ NS ns.far.test.
@ NSEC a NS SOA
a A 192.0.2.2
a NSEC cut A
cut NS ns.cut
cut NSEC long NS
ns.cut A 192.0.2.4
long DNAME aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test.
long NSEC out DNAME
out DNAME far.test.
out NSEC *.wa DNAME
*.wa CNAME a
*.wa NSEC *.wc CNAME
*.wc CNAME x.cut
*.wc NSEC *.wf CNAME
*.wf CNAME far.test.
*.wf NSEC *.wl CNAME
*.wl CNAME bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.long
*.wl NSEC *.wn CNAME
*.wn CNAME q.wo
*.wn NSEC *.wo CNAME
*.wo CNAME x.out
*.wo NSEC *.ws CNAME
*.ws CNAME @
*.ws NSEC *.ww CNAME
*.ww CNAME q.wf
*.ww NSEC *.wx CNAME
*.wx CNAME nothing
*.wx NSEC @ CNAME
";

/// RFC 4035 §3.1.3.3: each alias from a wildcard needs the proof that no closer name exists, wherever it leads.
#[test]
fn proves_each_wildcard_in_a_chain_of_aliases() {
    let zone = zone(WILD);
    let end = |name: &str, qtype: Type, dnssec_ok: bool| {
        let name = Name::from_text(name).unwrap();
        let mut message = MessageBuf::new();
        message.start(Header::default(), Some((name.as_ref(), qtype, wire::Class::IN)));
        let question = Question { name: name.as_ref(), qtype, dnssec_ok };
        let reply = zone.answer(question, &mut message).unwrap();
        if reply.next.is_some() {
            zone.end_alias(dnssec_ok, &mut message);
        }
        zone.prove_wildcards(dnssec_ok, &mut message);
        let authority = message.section(Section::Authority).map(|mark| {
            let owner = message.owner(mark).unwrap().to_string();
            format!("{} {}", owner.trim_end_matches(".z.test."), mark.rtype)
        });
        authority.collect::<Vec<_>>().join(", ")
    };
    for (name, qtype, wanted) in [
        ("q.wf.z.test.", Type::A, "z.test. NS, *.wf NSEC"),
        ("q.wf.z.test.", Type::CNAME, "z.test. NS, *.wf NSEC"),
        ("b.q.wf.z.test.", Type::A, "z.test. NS, *.wf NSEC"),
        ("q.ww.z.test.", Type::A, "z.test. NS, *.ww NSEC, *.wf NSEC"),
        ("q.wn.z.test.", Type::A, "z.test. NS, *.wn NSEC, *.wo NSEC"),
        ("q.wo.z.test.", Type::A, "z.test. NS, *.wo NSEC"),
        ("x.out.z.test.", Type::A, "z.test. NS"),
        ("q.wa.z.test.", Type::A, "z.test. NS, *.wa NSEC"),
        ("q.wa.z.test.", Type::MX, "z.test. SOA, *.wa NSEC, a NSEC"),
        ("q.wx.z.test.", Type::A, "z.test. SOA, *.wx NSEC, long NSEC, z.test. NSEC"),
        ("q.wc.z.test.", Type::A, "cut NS, *.wc NSEC, cut NSEC"),
        ("q.ws.z.test.", Type::NS, "*.ws NSEC"),
        ("q.ws.z.test.", Type::MX, "z.test. SOA, *.ws NSEC, z.test. NSEC"),
        ("q.wl.z.test.", Type::A, "*.wl NSEC"),
    ] {
        assert_eq!(end(name, qtype, true), wanted, "{name} {qtype}");
    }
    assert_eq!(end("q.wf.z.test.", Type::A, false), "z.test. NS");
}

/// Only a repeated name is a loop: a DNAME or a wildcard may apply to several names of a chain (RFC 6672 §2.2).
#[test]
fn follows_a_rule_that_applies_twice_in_a_chain() {
    let zone = zone(ZONE);
    for (name, wanted) in [
        ("www.twice.z.test.", "aa | twice DNAME www.twice CNAME www A | z.test. NS |"),
        ("www.twice.twice.z.test.", "aa | twice DNAME www.twice.twice CNAME www.twice CNAME www A | z.test. NS |"),
        ("a.twice.twice.z.test.", "NXDOMAIN aa | twice DNAME a.twice.twice CNAME a.twice CNAME | z.test. SOA |"),
        ("twice.twice.z.test.", "aa | twice DNAME twice.twice CNAME | z.test. SOA |"),
        ("a.pair.z.test.", "aa | a.pair CNAME x.pair2 CNAME y.pair3 CNAME www A | z.test. NS |"),
        ("a.turn.z.test.", "SERVFAIL aa | a.turn CNAME x.turn2 CNAME x.turn CNAME | z.test. NS |"),
    ] {
        assert_eq!(ask(&zone, name, Type::A, false), wanted, "{name}");
    }
    let grows = ask(&zone, "a.grow.z.test.", Type::A, false);
    assert_eq!(grows.matches(" CNAME").count(), super::ALIASES_MAX, "{grows}");
    assert!(grows.starts_with("SERVFAIL aa | grow DNAME a.grow CNAME"), "{grows}");
}
