//! Fuzzer for [`fuzz::reply`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::reply(input));
