// fuzz.hpp -- what a fuzz target and a driver share. libFuzzer is one driver (clang++ -fsanitize=fuzzer),
// standalone.cpp another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Inputs to start from.
std::vector<std::string> fuzz_seeds();

inline void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}
