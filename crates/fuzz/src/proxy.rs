//! Headers of the PROXY protocol, which the first bytes of a connection or a datagram may be.

use transport::proxy::{HeaderScan, scan};

/// The first bytes of a connection and of a datagram. A header lies within them, and has the same length whatever
/// follows it. A part of a header is never taken for a whole one.
pub fn header(input: &[u8]) {
    for is_stream in [true, false] {
        let found = scan(input, is_stream);
        let HeaderScan::Header(length, _) = found else { continue };
        assert!(length <= input.len(), "{length} of {} bytes", input.len());
        assert_eq!(scan(&input[..length], is_stream), found);
        for end in 0..length {
            assert_eq!(scan(&input[..end], is_stream), HeaderScan::Incomplete, "{end} of {length} bytes");
        }
    }
}
