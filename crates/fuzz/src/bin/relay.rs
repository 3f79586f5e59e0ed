//! Fuzzer for [`fuzz::relay::relay`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::relay::relay(input));
