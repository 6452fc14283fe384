// segment.hpp -- the scanner's findings as arrays of byte offsets.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hsca/parallel.hpp"
#include "hsca/text/byte_class.hpp"

namespace hsca {

struct Segments {
    // Flat pairs: begin, end, begin, end, ...
    std::vector<std::int64_t> words;
    std::vector<std::int64_t> sentences;
    std::vector<std::int64_t> paragraphs;
    void clear() {
        words.clear();
        sentences.clear();
        paragraphs.clear();
    }
};

// Returns false when `stop` asked to give up.
bool segment(std::string_view text, SimdLevel level, Segments& out, Stop* stop = nullptr);

}  // namespace hsca
