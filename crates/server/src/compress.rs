//! Compression of pages for clients that accept it, as Prometheus does for `/metrics`.

use std::borrow::Cow;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::HeaderMap;
use hyper::header::ACCEPT_ENCODING;

/// Maximum size in bytes of a body that is sent uncompressed: it fits into one packet.
const PLAIN_MAX: usize = 1400;

/// Compresses a text body with gzip if the client accepts that and the body is longer than a packet.
pub(crate) fn gzip(headers: &HeaderMap, content_type: &str, body: &[u8]) -> Option<Vec<u8>> {
    let is_text = content_type.starts_with("text/");
    if body.len() <= PLAIN_MAX || !is_text || !accepts_gzip(headers) {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).and_then(|()| encoder.finish()).ok()
}

/// Returns true if `Accept-Encoding` allows gzip (RFC 9110 §12.5.3). A weight of 0 means not acceptable.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let accepts = |value: Cow<'_, str>| {
        value.split(',').any(|coding| {
            let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
            let weight = parameters.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
            name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
        })
    };
    values.into_iter().any(accepts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use std::io::Read;

    #[test]
    fn parses_accept_encoding() {
        for (value, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=x", false),
            ("deflate", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn compresses_long_text_only() {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
        let text = "series 1\n".repeat(1000);
        let packed = gzip(&headers, "text/plain", text.as_bytes()).expect("it is compressed");
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&*packed).read_to_string(&mut unpacked).expect("gzip");
        assert!(packed.len() < text.len() / 10 && unpacked == text);
        assert!(gzip(&headers, "application/octet-stream", text.as_bytes()).is_none());
        assert!(gzip(&headers, "text/plain", b"OK").is_none());
    }
}
