// portable_math.hpp -- exp and log from additions, multiplications and divisions alone, so that every platform gives
// the same bits (libm's do not agree in the last place). Within 3 units in the last place of the true value.
#pragma once

#include <array>
#include <cmath>

namespace hsca {

// x finite and positive.
inline double portable_log(double x) noexcept {
    int exponent;
    double m = std::frexp(x, &exponent);  // [0.5, 1)
    if (m < 0.70710678118654752440) {
        m *= 2.0;
        --exponent;
    }
    // ln m = 2 atanh(s), |s| < 0.172: eleven odd terms reach 1e-17.
    const double s = (m - 1.0) / (m + 1.0);
    const double s2 = s * s;
    double series = 1.0 / 23.0;
    for (int odd = 21; odd >= 1; odd -= 2) series = series * s2 + 1.0 / odd;
    constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
    return exponent * kLn2High + (2.0 * s * series + exponent * kLn2Low);
}

// |x| < 700.
inline double portable_exp(double x) noexcept {
    constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
    const double k = std::floor(x * 1.44269504088896338700 + 0.5);
    const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| < 0.347
    constexpr auto kFactors = [] {                      // 1 / n!
        std::array<double, 16> factors{1.0};
        for (int n = 1; n < 16; ++n) factors[n] = factors[n - 1] / n;
        return factors;
    }();
    double series = kFactors[15];
    for (int n = 14; n >= 0; --n) series = series * r + kFactors[n];
    return std::ldexp(series, static_cast<int>(k));
}

}  // namespace hsca
