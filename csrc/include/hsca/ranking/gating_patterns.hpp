// gating_patterns.hpp -- the patterns behind the gating signals (gating.hpp), found in one pass over the words of a
// text. `_reference/gating.py` states each as a regular expression; the matches counted here are the same.
//
// Word characters, digits and blanks are ASCII. `strict` replaces the patterns that are known to fire on plain prose:
// file_path, function_def, function_ref, shell_command, url_or_endpoint, hex_or_hash, human_name, error_code, git_ref.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hsca {

enum class GatingPattern : std::size_t {
    code_fence,
    file_path,
    function_def,
    shell_command,
    url_or_endpoint,
    stack_trace,
    hex_or_hash,
    date,
    quantity,
    human_name,
    preference,
    fact_assertion,
    function_ref,
    error_code,
    git_ref,
    arch_decision,
    resolution,
    milestone,
    config_change,
    data_structure,
    dependency,
    test_case,
    doc_comment,
};
inline constexpr std::size_t kGatingPatterns = 23;

// Matches of file_path, function_ref, error_code, git_ref and url_or_endpoint are counted; the others are 0 or 1.
struct PatternCounts {
    std::array<std::uint32_t, kGatingPatterns> counts{};

    std::uint32_t operator[](GatingPattern p) const { return counts[static_cast<std::size_t>(p)]; }
    std::uint32_t& operator[](GatingPattern p) { return counts[static_cast<std::size_t>(p)]; }
};

// `text` without the white space at its ends.
std::string_view strip_white_space(std::string_view text) noexcept;

// Scratch memory of one worker.
class PatternScanner {
  public:
    // `text` is stripped already.
    PatternCounts scan(std::string_view text, bool strict);

  private:
    struct Word {
        std::size_t begin;
        std::size_t end;
        std::size_t line;
        std::uint32_t cue;  // Cue of gating_patterns.cpp, 0 for words without meaning here
        std::uint8_t all;   // byte classes that all of its bytes have
        std::uint8_t some;  // byte classes that one of them has
    };
    class Matcher;
    std::vector<Word> words_;
};

}  // namespace hsca
