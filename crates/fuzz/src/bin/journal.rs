//! Fuzzer for [`fuzz::zone::journal`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::zone::journal(input));
