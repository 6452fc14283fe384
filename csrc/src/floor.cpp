#include "hsca/floor.hpp"

namespace hsca {

std::uint64_t split_and_hash(std::span<const std::string_view> texts) noexcept {
    constexpr std::uint64_t kBasis = 14695981039346656037ull, kPrime = 1099511628211ull;
    std::uint64_t sum = 0;
    for (const std::string_view text : texts) {
        std::uint64_t hash = kBasis;
        bool in_word = false;
        for (const char byte : text) {
            auto c = static_cast<unsigned char>(byte);
            if (c >= 'A' && c <= 'Z') c |= 0x20;
            const bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80;
            if (is_word) {
                hash = (hash ^ c) * kPrime;
                in_word = true;
            } else if (in_word) {
                sum += hash + 1;
                hash = kBasis;
                in_word = false;
            }
        }
        if (in_word) sum += hash + 1;
    }
    return sum;
}

namespace {

template <bool kThird, bool kScope>
void stream_loop(const float* __restrict first, const float* __restrict second, const float* __restrict third,
                 const std::uint8_t* __restrict scope, std::size_t n, float* __restrict out) noexcept {
    for (std::size_t i = 0; i < n; ++i) {
        float sum = first[i] + second[i];
        if constexpr (kThird) sum += third[i];
        if constexpr (kScope) sum += static_cast<float>(scope[i]);
        out[i] = sum;
    }
}

}  // namespace

void stream_columns(const float* first, const float* second, const float* third, const std::uint8_t* scope,
                    std::size_t n, float* out) noexcept {
    const auto loop = third ? (scope ? stream_loop<true, true> : stream_loop<true, false>)
                            : (scope ? stream_loop<false, true> : stream_loop<false, false>);
    loop(first, second, third, scope, n, out);
}

}  // namespace hsca
