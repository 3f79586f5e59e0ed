//! Fuzzer for [`fuzz::quic::doh`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::quic::doh(input));
