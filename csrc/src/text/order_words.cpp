#include "hsca/text/order_words.hpp"

namespace hsca {

namespace {

constexpr OrderWord kWords[] = {
#include "order_words.inc"
};

}  // namespace

std::span<const OrderWord> order_words() noexcept { return kWords; }

}  // namespace hsca
