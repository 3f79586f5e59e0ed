//! Fuzzer for [`fuzz::corefile`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::corefile(input));
