//! Fuzzer for [`fuzz::snapshot::log`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::snapshot::log(input));
