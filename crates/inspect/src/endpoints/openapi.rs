//! The description of the control API.

use std::io::Read;

use flate2::read::GzDecoder;
use host::invariant::holds;

/// `docs/openapi.json`, compressed by the build script.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

/// Returns the OpenAPI 3.1 document of the API.
pub(super) fn document() -> Vec<u8> {
    let mut text = Vec::new();
    let unpacked = GzDecoder::new(PACKED).read_to_end(&mut text);
    holds(unpacked.is_ok(), "what the build has compressed can be decompressed");
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_the_published_document() {
        assert_eq!(super::document(), include_bytes!("../../../../docs/openapi.json"));
    }
}
