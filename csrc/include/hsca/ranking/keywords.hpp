// keywords.hpp -- the terms of a text, the keywords of a query, and M = |K n terms(d)| / max(|K|, 1) (section 7.5).
//
//   ascii    lower-cased runs of a-z, 0-9 and _; everything else separates. (The Kelvin sign and the dotted capital I
//            lower-case into ASCII.)
//   unicode  case-folded runs of letters, digits, marks and _; in scripts without spaces every pair of neighbours is a
//            term, and a lone character is one. Nothing is normalised: composed and decomposed spellings differ.
//
// Keywords are the terms of at least `min_length` characters, each once, in order of first occurrence; pairs of an
// unspaced script count whatever the length. No stop words, no stemming.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hsca/parallel.hpp"

namespace hsca {

enum class TermKind { ascii, unicode };

std::vector<std::string> extract_keywords(std::string_view text, TermKind kind, std::size_t min_length);

// Keywords looked up by their bytes.
class KeywordSet {
  public:
    // Folds each keyword as a text's characters are; repeated ones count once, empty ones not at all.
    KeywordSet(std::span<const std::string_view> keywords, TermKind kind);

    std::size_t size() const noexcept { return words_.size(); }
    TermKind kind() const noexcept { return kind_; }
    // Number of the keyword, or -1.
    std::int64_t find(std::string_view term) const noexcept;
    // False when no keyword starts with this byte, or none has this many bytes.
    bool may_hold(unsigned char first, std::size_t length) const noexcept {
        return starts_[first] && (lengths_ & length_bit(length)) != 0;
    }

  private:
    static std::uint64_t length_bit(std::size_t length) noexcept {
        return std::uint64_t(1) << std::min<std::size_t>(length, 63);
    }

    TermKind kind_;
    std::array<bool, 256> starts_{};
    std::uint64_t lengths_ = 0;
    std::vector<std::string> words_;
    std::vector<std::int32_t> slots_;  // open addressing; -1 is free
};

// Throws std::invalid_argument when sizes differ. False when stopped by `poll`.
bool keyword_coverage(const KeywordSet& keywords, std::span<const std::string_view> texts, std::size_t threads,
                      Stop::Poll poll, std::span<double> out);

}  // namespace hsca
