//! Fuzzer for [`fuzz::stream::stream`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::stream::stream(input));
