//! Fuzzer for [`fuzz::zone::file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::zone::file(input));
