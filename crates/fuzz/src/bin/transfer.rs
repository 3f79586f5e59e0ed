//! Fuzzer for [`fuzz::zone::transfer`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::zone::transfer(input));
