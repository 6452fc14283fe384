// order_words.hpp -- the words whose neighbours say whether words stand in order (coherence.hpp), by class.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hsca {

struct OrderWord {
    std::string_view word;
    std::uint8_t order_class;  // from 1; several words may share one
};

std::span<const OrderWord> order_words() noexcept;

}  // namespace hsca
