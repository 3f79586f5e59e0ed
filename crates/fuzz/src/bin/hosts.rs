//! Fuzzer for [`fuzz::files::hosts`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::hosts(input));
