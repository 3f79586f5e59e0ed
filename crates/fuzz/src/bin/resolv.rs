//! Fuzzer for [`fuzz::files::resolv`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::resolv(input));
