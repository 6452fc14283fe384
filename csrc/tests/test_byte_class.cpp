#include <string_view>
#include <vector>

#include "check.hpp"
#include "hsca/text/byte_class.hpp"

using namespace hsca;

namespace {

ByteMasks naive(const unsigned char* block) {
    ByteMasks m{};
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned char c = block[i];
        const std::uint64_t bit = 1ull << i;
        const auto is_one_of = [c](std::string_view set) {
            return c && set.find(static_cast<char>(c)) != std::string_view::npos;
        };
        const bool digit = c >= '0' && c <= '9';
        if (digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) m.word |= bit;
        if (digit) m.digit |= bit;
        if (is_one_of("'-_")) m.joiner |= bit;
        if (is_one_of(".,")) m.separator |= bit;
        if (is_one_of(".!?\n")) m.event |= bit;
        if (c >= 0x80) m.high |= bit;
    }
    return m;
}

bool same(const ByteMasks& a, const ByteMasks& b) {
    return a.word == b.word && a.digit == b.digit && a.joiner == b.joiner && a.separator == b.separator &&
           a.event == b.event && a.high == b.high;
}

void agrees(const std::vector<unsigned char>& text, std::size_t from) {
    const std::size_t n = (text.size() - from) / 64;
    for (const SimdLevel level : {SimdLevel::scalar, SimdLevel::baseline}) {
        std::vector<ByteMasks> masks(n + 1, ByteMasks{1, 2, 3, 4, 5, 6});
        classify_bytes(level)(text.data() + from, n, masks.data());
        for (std::size_t b = 0; b < n; ++b) CHECK(same(masks[b], naive(text.data() + from + 64 * b)));
        CHECK(same(masks[n], ByteMasks{1, 2, 3, 4, 5, 6}));
    }
}

}  // namespace

int main() {
    // Every byte at every place of a block.
    for (unsigned c = 0; c < 256; ++c) {
        for (std::size_t at = 0; at < 64; ++at) {
            std::vector<unsigned char> text(64, ' ');
            text[at] = static_cast<unsigned char>(c);
            agrees(text, 0);
        }
    }
    // Any address, any number of blocks, nothing written after the last.
    check::Random random{1};
    for (const std::size_t blocks : {0u, 1u, 2u, 63u, 64u, 65u}) {
        for (std::size_t from = 0; from < 64; ++from) {
            std::vector<unsigned char> text(from + 64 * blocks);
            for (unsigned char& c : text) c = static_cast<unsigned char>(random());
            agrees(text, from);
        }
    }
    return check::result();
}
