//! Fuzzer for [`fuzz::files::expression`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::expression(input));
