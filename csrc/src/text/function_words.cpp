#include "hsca/text/function_words.hpp"

#include <array>

namespace hsca {

namespace {

constexpr std::string_view kWords[] = {
#include "function_words.inc"
};

constexpr WordKey utf8_key(std::string_view word) {
    // Multi-byte lower-case words are their own folded form: no case bit is set in them.
    for (const char c : word) {
        if (static_cast<unsigned char>(c) >= 0x80) {
            WordKey key{0, 0};
            for (std::size_t i = 0; i < word.size(); ++i) {
                const std::uint64_t byte = static_cast<unsigned char>(word[i]);
                (i < 8 ? key.low : key.high) |= byte << (8 * (i % 8));
            }
            return key;
        }
    }
    return ascii_key(word);
}

constexpr auto keys_of_words() {
    std::array<WordKey, std::size(kWords)> keys{};
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = utf8_key(kWords[i]);
    return keys;
}

}  // namespace

constinit const PerfectWordTable<1024> kFunctionWords{keys_of_words()};

std::span<const std::string_view> function_words() noexcept { return kWords; }

}  // namespace hsca
