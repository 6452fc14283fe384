#include "hsca/text/function_words.hpp"

#include <algorithm>
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

constexpr PerfectWordTable<1024> make_table() {
    std::array<WordKey, std::size(kWords)> keys{};
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = utf8_key(kWords[i]);
    PerfectWordTable<1024> table(keys);
    for (const WordKey& key : keys) table.set(key, kIsFunctionWord);
    for (const ContinuityWords& group : kContinuityWords) {
        std::string_view rest = group.words;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            table.set(utf8_key(rest.substr(0, end)),
                      static_cast<std::uint16_t>(kIsFunctionWord | 1u << static_cast<unsigned>(group.kind)));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    return table;
}

}  // namespace

constinit const PerfectWordTable<1024> kFunctionWords = make_table();

std::span<const std::string_view> function_words() noexcept { return kWords; }

}  // namespace hsca
