//! Fuzzer for [`fuzz::quic::http3`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::quic::http3(input));
