//! Fuzzer for [`fuzz::files::signed`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::files::signed(input));
