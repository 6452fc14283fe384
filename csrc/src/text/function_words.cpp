#include "hsca/text/function_words.hpp"

#include <algorithm>

namespace hsca {

namespace {

constexpr std::string_view kWords[] = {
#include "function_words.inc"
};

struct ContinuityWords {
    Continuity kind;
    std::string_view words;  // each of them listed above
};
constexpr ContinuityWords kContinuityWords[] = {
    {Continuity::he, "he him his himself he'd he'll he's"},
    {Continuity::she, "she her hers herself she'd she'll she's"},
    {Continuity::first_person, "i me my mine myself i'd i'll i'm i've"},
    {Continuity::we, "we us our ours ourselves we'd we'll we're we've"},
    {Continuity::they, "they them their theirs themselves they'd they'll they're they've"},
    {Continuity::you, "you your yours yourself yourselves you'd you'll you're you've"},
    {Continuity::it, "it its itself it'd it'll it's"},
    {Continuity::past, "was were had did wasn't weren't hadn't didn't"},
    {Continuity::present, "is are has have do does am isn't aren't hasn't haven't don't doesn't"},
};

std::uint64_t continuities_of(std::string_view word) {
    std::uint64_t bits = 0;
    for (const ContinuityWords& group : kContinuityWords) {
        std::string_view rest = group.words;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            if (rest.substr(0, end) == word) bits |= 1ull << static_cast<unsigned>(group.kind);
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    return bits;
}

std::vector<WordTable::Entry> make_entries() {
    std::vector<WordTable::Entry> entries;
    for (const std::string_view word : kWords)
        entries.push_back({folded_key(word), kIsFunctionWord | continuities_of(word)});
    return entries;
}

}  // namespace

std::span<const WordTable::Entry> function_word_entries() {
    static const std::vector<WordTable::Entry> entries = make_entries();
    return entries;
}

bool is_function_word(const WordKey& key) noexcept {
    static const WordTable table(function_word_entries());
    return table[key] != 0;
}

std::span<const std::string_view> function_words() noexcept { return kWords; }

}  // namespace hsca
