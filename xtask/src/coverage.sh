#!/bin/sh
# Compiles a crate of this project with coverage instrumentation in the format of libFuzzer: `coverage.sh rustc ARGUMENT…`.
# What runs while others are compiled is left alone: it is linked without libFuzzer.
case " $* " in
*" build_script_build "* | *" proc-macro "*) exec "$@" ;;
esac
coverage=-sanitizer-coverage
exec "$@" -Cpasses=sancov-module -Cllvm-args=$coverage-level=3 -Cllvm-args=$coverage-inline-8bit-counters \
    -Cllvm-args=$coverage-pc-table -Cllvm-args=$coverage-trace-compares
