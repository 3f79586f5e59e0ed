//! Branches of the models, each with the paragraph that it follows.

use std::fmt;

/// Declares the branches: the paragraph and the meaning become documentation and text.
macro_rules! branches {
    ($($name:ident: $paragraph:literal, $meaning:literal;)*) => {
        /// Branch of a model.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Branch {
            $(#[doc = concat!($meaning, " (", $paragraph, ").")] $name,)*
        }

        impl Branch {
            /// All branches.
            pub const ALL: &'static [Branch] = &[$(Branch::$name),*];

            /// Returns the paragraph.
            #[must_use]
            pub const fn paragraph(self) -> &'static str {
                match self { $(Branch::$name => $paragraph,)* }
            }
        }
    };
}

branches! {
    // Answers of a zone.
    Outside: "RFC 1034 §4.3.2 step 2", "The server has no zone that contains the name";
    Exact: "RFC 1034 §4.3.2 step 3a", "Records of the name match the question";
    Cname: "RFC 1034 §4.3.2 step 3a", "The name is an alias, and the question goes on with its target";
    CnameAsked: "RFC 1034 §3.6.2", "A question for CNAME does not follow the alias";
    NoData: "RFC 2308 §2.2", "The name has records, but none of the type";
    EmptyNonTerminal: "RFC 4592 §2.2.2, RFC 8020 §2", "Only names below the name have records";
    Any: "RFC 8482 §4", "A question for all types gets some record of the name";
    Referral: "RFC 1034 §4.3.2 step 3b", "A zone cut is at or above the name";
    ReferralBelowAlias: "RFC 1034 §4.3.2 step 3b, RFC 6604 §2.1", "The target of an alias is delegated";
    Glue: "RFC 9471 §3.1", "The name server of a referral is below the cut, and has an address";
    DsAtCut: "RFC 4035 §3.1.4.1", "A question for DS at a zone cut is answered by the parent";
    WildcardMatch: "RFC 4592 §3.3.1", "Records are synthesized from a wildcard";
    WildcardCname: "RFC 4592 §4.3", "An alias is synthesized from a wildcard";
    WildcardCnameAsked: "RFC 4592 §3.3.3", "A question for CNAME gets the alias that is synthesized from a wildcard";
    WildcardNoData: "RFC 4592 §3.3.3", "The wildcard has records, but none of the type";
    WildcardEmpty: "RFC 4592 §4.9", "The wildcard has no records, but names below it do";
    WildcardAny: "RFC 8482 §4", "A question for all types gets some record that is synthesized from a wildcard";
    NameError: "RFC 2308 §2.1", "The name does not exist";
    NameErrorBelowAlias: "RFC 2308 §2.1, RFC 6604 §3", "The target of an alias does not exist";
    Dname: "RFC 6672 §3.2 step 3C", "The name is below a DNAME and is substituted";
    DnameApex: "RFC 6672 §2.3", "The DNAME is at the apex";
    DnameCnameAsked: "RFC 6672 §3.1", "A question for CNAME gets the one that is synthesized from a DNAME";
    TooLong: "RFC 6672 §2.2", "The substituted name is too long";
    AliasOut: "RFC 1034 §4.3.2 step 3a", "The target of an alias is in no zone of the server";
    AliasLoop: "RFC 1034 §3.6.2", "A chain of aliases comes back to a name of the chain";
    AliasGrows: "RFC 1034 §3.6.2", "A DNAME makes names of a chain longer without an end";
    // Records of a cluster, and answers from them. KDNS is the Kubernetes DNS specification 1.1.0.
    OtherCase: "KDNS §2.1, RFC 4343 §3", "The question has other letters than the objects";
    SchemaVersion: "KDNS §2.2", "The version of the schema";
    ServiceA: "KDNS §2.3.1", "An IPv4 address of a Service";
    ServiceAaaa: "KDNS §2.3.1", "An IPv6 address of a Service";
    ServiceSrv: "KDNS §2.3.2", "A named port of a Service with a cluster IP";
    ServiceUnnamedPort: "KDNS §2.3.2", "A port of a Service with a cluster IP that has no name has no SRV record";
    ServicePtr: "KDNS §2.3.3", "The name of an IPv4 cluster IP";
    ServicePtr6: "KDNS §2.3.3", "The name of an IPv6 cluster IP";
    HeadlessA: "KDNS §2.4.1", "An IPv4 address of a ready endpoint, under the name of the Service";
    HeadlessAaaa: "KDNS §2.4.1", "An IPv6 address of a ready endpoint, under the name of the Service";
    HeadlessNotReady: "KDNS §2.1", "An endpoint that is not ready has no records";
    HeadlessNoneReady: "KDNS §2.4.1", "A headless Service without ready endpoints does not exist";
    HostnameGiven: "KDNS §2.1, §2.4.1", "The host name of an endpoint is that of the object";
    HostnameAssigned: "KDNS §2.1, §2.4.1", "The host name of an endpoint is assigned by the system";
    HeadlessSrv: "KDNS §2.4.2", "A named port of an endpoint";
    HeadlessUnnamedPort: "KDNS §2.4.2", "A port of an endpoint that has no name has no SRV record";
    EndpointPtr: "KDNS §2.4.3", "The name of an IPv4 address of an endpoint";
    EndpointPtr6: "KDNS §2.4.3", "The name of an IPv6 address of an endpoint";
    ExternalName: "KDNS §2.5", "The alias of a Service of type ExternalName";
    PodName: "KDNS 1.0.1 §2.6", "The address of a Pod, which is in its name";
    ExtraRecord: "KDNS §3", "Further records are permitted at the name";
    ExtraName: "KDNS §3", "The name need not exist, and may";
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
