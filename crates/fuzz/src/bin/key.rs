//! Fuzzer for [`fuzz::files::key`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::key(input));
