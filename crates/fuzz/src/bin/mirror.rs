//! Fuzzer for [`fuzz::stream::mirror`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::stream::mirror(input));
