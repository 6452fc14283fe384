#include "hsca/ranking/keywords.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <unordered_set>

#include "hsca/text/unicode.hpp"

namespace hsca {

namespace {

// Lower-case form of the ASCII bytes of a term, 0 for all others.
constexpr std::array<unsigned char, 256> make_term_bytes() {
    std::array<unsigned char, 256> table{};
    for (std::size_t c = '0'; c <= '9'; ++c) table[c] = static_cast<unsigned char>(c);
    for (std::size_t c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = static_cast<unsigned char>(c);
    table['_'] = '_';
    return table;
}
constexpr auto kTermBytes = make_term_bytes();

constexpr std::uint32_t kDottedI = 0x130, kKelvin = 0x212A;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t count_characters_of(std::string_view term) {
    return term.size() - static_cast<std::size_t>(std::count_if(term.begin(), term.end(), is_continuation));
}

// Calls found(term, is_unspaced) for the terms of a text in order; false from it ends the scan. ASCII terms for which
// wanted(first byte, length) is false are left out: most words can be told from a keyword by that.
class TermScanner {
  public:
    explicit TermScanner(TermKind kind) : kind_(kind) {}

    template <class Wanted, class Found>
    void scan(std::string_view text, const Wanted& wanted, Found&& found) {
        if (text.size() <= kShort && is_ascii(text)) {
            scan_ascii(text, wanted, found);
        } else {
            scan_any(text, wanted, found);
        }
    }

  private:
    static constexpr std::size_t kShort = 4096;

    static bool is_ascii(std::string_view text) {
        unsigned char all = 0;
        for (const char c : text) all |= static_cast<unsigned char>(c);
        return all < 0x80;
    }

    // Where runs begin and end is written down without a branch: lengths of words are what no processor foresees.
    template <class Wanted, class Found>
    void scan_ascii(std::string_view text, const Wanted& wanted, Found& found) {
        std::array<std::uint16_t, kShort + 2> bounds;
        std::size_t n = 0;
        bool inside = false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const bool is_term = kTermBytes[static_cast<unsigned char>(text[i])] != 0;
            bounds[n] = static_cast<std::uint16_t>(i);
            n += is_term != inside;
            inside = is_term;
        }
        bounds[n] = static_cast<std::uint16_t>(text.size());  // of a run that goes to the end
        for (std::size_t b = 0; b < n; b += 2) {
            const std::string_view run = text.substr(bounds[b], bounds[b + 1] - std::size_t{bounds[b]});
            if (!wanted(kTermBytes[static_cast<unsigned char>(run.front())], run.size())) continue;
            term_.resize(run.size());
            std::transform(run.begin(), run.end(), term_.begin(),
                           [](char c) { return static_cast<char>(kTermBytes[static_cast<unsigned char>(c)]); });
            if (!close(found)) return;
        }
    }

    template <class Wanted, class Found>
    void scan_any(std::string_view text, const Wanted& wanted, Found& found) {
        const auto* at = reinterpret_cast<const unsigned char*>(text.data());
        const auto* const end = at + text.size();
        term_.clear();
        while (at != end) {
            if (*at < 0x80 && term_.empty()) {
                const auto* const run = at;
                while (at != end && kTermBytes[*at]) ++at;
                const bool is_whole = at == end || *at < 0x80;
                if (at == run) {
                    ++at;
                } else if (!is_whole || wanted(kTermBytes[*run], static_cast<std::size_t>(at - run))) {
                    term_.resize(static_cast<std::size_t>(at - run));
                    std::transform(run, at, term_.begin(),
                                   [](unsigned char c) { return static_cast<char>(kTermBytes[c]); });
                    if (is_whole && !close(found)) return;
                }
                continue;
            }
            if (*at < 0x80) {
                const unsigned char folded = kTermBytes[*at++];
                if (folded) {
                    term_.push_back(static_cast<char>(folded));
                } else if (!close(found)) {
                    return;
                }
                continue;
            }
            const CodePoint c = decode_utf8(at, end);
            const unsigned char* const after = at + c.length;
            if (kind_ == TermKind::ascii) {
                if (c.value == kDottedI) term_.push_back('i');  // and a combining dot, which separates
                if (c.value == kKelvin) {
                    term_.push_back('k');
                } else if (!close(found)) {
                    return;
                }
                at = after;
                continue;
            }
            const CharClass kind = char_class(c.value);
            if (kind == CharClass::unspaced) {
                if (!close(found) || !unspaced_run(at, end, found)) return;
                continue;
            }
            if (is_word_start(kind) || (kind == CharClass::mark && !term_.empty())) {
                append_folded(c.value);
            } else if (!close(found)) {
                return;
            }
            at = after;
        }
        close(found);
    }

    void append_folded(std::uint32_t code_point) {
        unsigned char folded[8];
        const std::size_t length = fold_char(code_point, folded);
        term_.append(reinterpret_cast<const char*>(folded), length);
    }

    template <class Found>
    bool close(Found& found) {
        if (term_.empty()) return true;
        const bool go_on = found(std::string_view(term_), false);
        term_.clear();
        return go_on;
    }

    // Pairs of the run of unspaced characters at `at`, which is moved past it.
    template <class Found>
    bool unspaced_run(const unsigned char*& at, const unsigned char* end, Found& found) {
        bool go_on = true;
        std::size_t first_length = 0;  // bytes of the first character in term_
        std::size_t n_characters = 0;
        for (; at != end && go_on; ++n_characters) {
            const CodePoint c = decode_utf8(at, end);
            if (char_class(c.value) != CharClass::unspaced) break;
            at += c.length;
            const std::size_t before = term_.size();
            append_folded(c.value);
            if (n_characters > 0) {
                go_on = found(std::string_view(term_), true);
                term_.erase(0, first_length);
                first_length = term_.size();
            } else {
                first_length = term_.size() - before;
            }
        }
        if (n_characters == 1) go_on = found(std::string_view(term_), true);
        term_.clear();
        return go_on;
    }

    TermKind kind_;
    std::string term_;
};

// All of up to 8 bytes in one word; together with their number they are told apart.
std::uint64_t load(std::string_view bytes) noexcept {
    const std::size_t n = bytes.size();
    if (n >= 4) {
        std::uint32_t head, tail;
        std::memcpy(&head, bytes.data(), 4);
        std::memcpy(&tail, bytes.data() + n - 4, 4);
        return std::uint64_t(tail) << 32 | head;
    }
    std::uint64_t word = 0;
    for (const char c : bytes) word = word << 8 | static_cast<unsigned char>(c);
    return word;
}

std::size_t hash_term(std::string_view term) noexcept {
    std::uint64_t x = term.size();
    const auto mix = [&](std::uint64_t word) { x = std::rotl((x ^ word) * 0x9E3779B97F4A7C15ull, 29); };
    for (; term.size() > 8; term.remove_prefix(8)) mix(load(term.substr(0, 8)));
    mix(load(term));
    x ^= x >> 32;
    return static_cast<std::size_t>(x * 0xD6E8FEB86659FD93ull >> 20);
}

}  // namespace

std::vector<std::string> extract_keywords(std::string_view text, TermKind kind, std::size_t min_length) {
    std::vector<std::string> keywords;
    std::unordered_set<std::string> seen;
    const auto all = [](unsigned char, std::size_t) { return true; };
    TermScanner(kind).scan(text, all, [&](std::string_view term, bool is_unspaced) {
        if ((is_unspaced || count_characters_of(term) >= min_length) && seen.emplace(term).second) {
            keywords.emplace_back(term);
        }
        return true;
    });
    return keywords;
}

KeywordSet::KeywordSet(std::span<const std::string_view> keywords, TermKind kind) : kind_(kind) {
    slots_.assign(std::bit_ceil(4 * keywords.size() + 1), -1);
    for (const std::string_view keyword : keywords) {
        std::string folded;
        const auto* at = reinterpret_cast<const unsigned char*>(keyword.data());
        const auto* const end = at + keyword.size();
        while (at != end) {
            const CodePoint c = decode_utf8(at, end);
            unsigned char bytes[8];
            const std::size_t length = fold_char(c.value, bytes);
            folded.append(reinterpret_cast<const char*>(bytes), length);
            at += c.length;
        }
        if (folded.empty() || find(folded) >= 0) continue;
        starts_[static_cast<unsigned char>(folded.front())] = true;
        lengths_ |= length_bit(folded.size());
        std::size_t slot = hash_term(folded) & (slots_.size() - 1);
        while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = static_cast<std::int32_t>(words_.size());
        words_.push_back(std::move(folded));
    }
}

std::int64_t KeywordSet::find(std::string_view term) const noexcept {
    for (std::size_t slot = hash_term(term);; ++slot) {
        const std::int32_t number = slots_[slot & (slots_.size() - 1)];
        if (number < 0 || words_[static_cast<std::size_t>(number)] == term) return number;
    }
}

bool keyword_coverage(const KeywordSet& keywords, std::span<const std::string_view> texts, std::size_t threads,
                      Stop::Poll poll, std::span<double> out) {
    if (out.size() != texts.size()) throw std::invalid_argument("keyword_coverage: one element a text is needed");
    struct Scratch {
        TermScanner terms;
        std::vector<std::size_t> seen_in;  // the last text that held the keyword, counted from 1
    };
    constexpr std::size_t kGrain = 64, kLong = 4096;
    std::vector<Scratch> scratch(worker_count(texts.size(), threads, kGrain),
                                 {TermScanner(keywords.kind()), std::vector<std::size_t>(keywords.size())});
    Stop stop(poll);
    const auto wanted = [&](unsigned char first, std::size_t length) { return keywords.may_hold(first, length); };
    return parallel_for(
        texts.size(), threads, kGrain, stop, [&](std::size_t worker, std::size_t begin, std::size_t end) {
            auto& [terms, seen_in] = scratch[worker];
            for (std::size_t i = begin; i < end; ++i) {
                if (texts[i].size() > kLong && stop.requested()) return;
                std::size_t covered = 0;
                if (keywords.size() > 0) {
                    terms.scan(texts[i], wanted, [&, &seen = seen_in](std::string_view term, bool) {
                        const std::int64_t number = keywords.find(term);
                        if (number >= 0) {
                            std::size_t& last = seen[static_cast<std::size_t>(number)];
                            covered += last != i + 1;
                            last = i + 1;
                        }
                        return covered < keywords.size();
                    });
                }
                out[i] = static_cast<double>(covered) / static_cast<double>(std::max<std::size_t>(keywords.size(), 1));
            }
        });
}

}  // namespace hsca
