// check.hpp -- CHECK macros that print where and what, count, and go on; main returns check::result().
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

namespace check {

inline int failures = 0;

template <class T>
std::string show(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
        char text[64];
        std::snprintf(text, sizeof text, "%.17g", static_cast<double>(value));
        return text;
    } else if constexpr (std::is_enum_v<T>) {
        return std::to_string(static_cast<long long>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        return std::to_string(value);
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
        return '"' + std::string(std::string_view(value).substr(0, 200)) + '"';
    } else {
        return "(a value)";
    }
}

inline void fail(const char* file, int line, const std::string& what) {
    // A broken loop shall not fill the disk.
    if (++failures <= 20) std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

inline int result() {
    if (failures) std::fprintf(stderr, "%d checks failed\n", failures);
    return failures ? 1 : 0;
}

// splitmix64: the same numbers everywhere.
struct Random {
    std::uint64_t state;
    std::uint64_t operator()() {
        std::uint64_t x = state += 0x9E3779B97F4A7C15ull;
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ x >> 27) * 0x94D049BB133111EBull;
        return x ^ x >> 31;
    }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>((*this)() % n); }
    template <class List>
    const auto& of(const List& list) {
        return list[below(std::size(list))];
    }
};

}  // namespace check

#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
    } while (false)

#define CHECK_EQ(found, expected)                                                                                     \
    do {                                                                                                              \
        const auto found_ = (found);                                                                                  \
        const auto expected_ = (expected);                                                                            \
        if (!(found_ == expected_))                                                                                   \
            check::fail(__FILE__, __LINE__, #found " is " + check::show(found_) + ", not " + check::show(expected_)); \
    } while (false)

#define CHECK_THROWS(expression, Exception)                                                       \
    do {                                                                                          \
        bool thrown_ = false;                                                                     \
        try {                                                                                     \
            expression;                                                                           \
        } catch (const Exception&) {                                                              \
            thrown_ = true;                                                                       \
        }                                                                                         \
        if (!thrown_) check::fail(__FILE__, __LINE__, #expression " does not throw " #Exception); \
    } while (false)
