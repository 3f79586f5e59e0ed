//! Codes of the diagnostics about releases of CoreDNS.

corefile::codes! {
    DIRECTIVE = "coredns/directive": "a directive that CoreDNS, or this version of it, does not have";
    PROPERTY = "coredns/property": "a property that CoreDNS, or this version of it, does not have";
    ARGUMENT = "coredns/argument": "an argument that CoreDNS, or this version of it, does not accept";
}
