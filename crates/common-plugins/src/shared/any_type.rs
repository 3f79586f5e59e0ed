//! Queries of type ANY for names whose records are generated.

use engine::Query;
use wire::Type;

/// Types of generated records, in the order in which they are tried. CNAME is the first, because a name with an alias
/// has no other records (RFC 1034 §3.6.2), and a query for CNAME does not follow it.
const TYPES: [Type; 7] = [Type::CNAME, Type::A, Type::AAAA, Type::SRV, Type::PTR, Type::TXT, Type::SOA];

/// Answers a query of type ANY with the first record set that its name has (RFC 8482 §4.1). `find` looks the name up
/// for the type that the query has then, and returns `None` if there is no such record.
#[cold]
pub fn first_of_any<R>(query: &mut Query, mut find: impl FnMut(&Query) -> Option<R>) -> Option<R> {
    let asked = query.qtype;
    let found = TYPES.into_iter().find_map(|rtype| {
        query.qtype = rtype;
        find(query)
    });
    query.qtype = asked;
    found
}
