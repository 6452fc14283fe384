#include <cfloat>
#include <limits>

#include "check.hpp"
#include "hsca/portable_math.hpp"

namespace {

constexpr bool kHasLonger = LDBL_MANT_DIG > DBL_MANT_DIG;
// The header promises 3; where long double is no better than double the oracle itself may be off by one.
constexpr double kUlps = kHasLonger ? 3.0 : 4.0;

double ulps(double found, long double exact) {
    const double nearest = static_cast<double>(exact);
    const double unit =
        std::nextafter(std::fabs(nearest), std::numeric_limits<double>::infinity()) - std::fabs(nearest);
    return static_cast<double>(std::fabs(static_cast<long double>(found) - exact) / static_cast<long double>(unit));
}

double worst_log = 0.0, worst_exp = 0.0;

void check_log(double x) {
    const double off = ulps(hsca::portable_log(x), std::log(static_cast<long double>(x)));
    if (off > worst_log) worst_log = off;
    if (!(off <= kUlps)) check::fail(__FILE__, __LINE__, "log(" + check::show(x) + ") is off by " + check::show(off));
}
void check_exp(double x) {
    const double off = ulps(hsca::portable_exp(x), std::exp(static_cast<long double>(x)));
    if (off > worst_exp) worst_exp = off;
    if (!(off <= kUlps)) check::fail(__FILE__, __LINE__, "exp(" + check::show(x) + ") is off by " + check::show(off));
}

}  // namespace

int main() {
    check::Random random{5};
    const auto unit = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    for (int round = 0; round < 200000; ++round) {
        const double u = unit();
        check_log(std::ldexp(0.5 + u / 2, static_cast<int>(random.below(2000)) - 1000));
        check_log(1.0 + std::ldexp(u - 0.5, -static_cast<int>(random.below(50))));
        check_log(0.5 + u);
        check_exp((u - 0.5) * 1398.0);
        check_exp((u - 0.5) * 2.0);
        check_exp(std::ldexp(u - 0.5, -static_cast<int>(random.below(60))));
    }
    CHECK_EQ(hsca::portable_log(1.0), 0.0);
    CHECK_EQ(hsca::portable_exp(0.0), 1.0);
    check_log(DBL_MIN);
    check_log(DBL_TRUE_MIN);
    check_log(DBL_MAX);
    for (int n = 1; n <= 5000; ++n) check_log(n);
    std::printf("worst: log %.3f ulp, exp %.3f ulp\n", worst_log, worst_exp);
    return check::result();
}
