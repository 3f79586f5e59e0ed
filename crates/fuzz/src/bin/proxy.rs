//! Fuzzer for [`fuzz::proxy::header`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::proxy::header(input));
