//! Fuzzer for [`fuzz::quic::doq`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::quic::doq(input));
