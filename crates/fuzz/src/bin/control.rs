//! Fuzzer for [`fuzz::control::control`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::control::control(input));
