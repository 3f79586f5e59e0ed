//! Fuzzer for [`fuzz::gzip::members`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::gzip::members(input));
