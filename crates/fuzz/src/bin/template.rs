//! Fuzzer for [`fuzz::files::template`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::template(input));
