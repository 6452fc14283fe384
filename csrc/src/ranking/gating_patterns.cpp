#include "hsca/ranking/gating_patterns.hpp"

#include <algorithm>

#include "hsca/text/unicode.hpp"
#include "hsca/text/word_table.hpp"

namespace hsca {

namespace {

constexpr std::uint8_t kDigit = 1, kLetter = 2, kLower = 4, kHexLower = 8, kHex = 16, kCapitalName = 32, kWord = 64,
                       kBlank = 128;

constexpr std::array<std::uint8_t, 256> make_byte_classes() {
    std::array<std::uint8_t, 256> table{};
    for (std::size_t c = '0'; c <= '9'; ++c) table[c] = kDigit | kHexLower | kHex | kCapitalName | kWord;
    for (std::size_t c = 'a'; c <= 'z'; ++c) {
        const std::uint8_t hex = c <= 'f' ? kHex : 0;
        table[c] = static_cast<std::uint8_t>(kLetter | kLower | kWord | hex | (c <= 'f' ? kHexLower : 0));
        table[c - 'a' + 'A'] = static_cast<std::uint8_t>(kLetter | kCapitalName | kWord | hex);
    }
    table['_'] = kCapitalName | kWord;
    for (const char c : {' ', '\t', '\n', '\r', '\f'}) table[static_cast<unsigned char>(c)] = kBlank;
    return table;
}
constexpr auto kByteClasses = make_byte_classes();

std::uint8_t class_of(char c) { return kByteClasses[static_cast<unsigned char>(c)]; }
bool is_word(char c) { return class_of(c) & kWord; }
bool is_blank(char c) { return class_of(c) & kBlank; }
bool is_gap(char c) { return c == ' ' || c == '\t'; }
bool is_path(char c) { return is_word(c) || c == '.' || c == '-'; }
bool is_endpoint(char c) {
    return (class_of(c) & (kLetter | kDigit)) || c == '.' || c == '_' || c == '~' || c == '/' || c == '-';
}
bool is_token(char c) { return is_path(c) || c == '/'; }

// Words that mean something, alone or with their neighbours.
// clang-format off
enum Cue : std::uint32_t {
    kNone, kAm, kAt, kBranch, kChanged, kClass, kConfiguration, kDecided, kDef, kDepends, kDescribe, kEnv, kErrorWord,
    kErrorNoun, kException, kFavorite, kFunc, kGo, kGoWord, kGoroutine, kHave, kHead, kHttp, kI, kIn, kInstead, kIs,
    kIt, kJson, kLike, kLive, kMain, kMake, kMakeWord, kMap, kMigrated, kMod, kMy, kOn, kOrigin, kOut, kPackage,
    kPanic, kReplaced, kRole, kRolled, kSet, kShell, kStack, kStandardize, kSwitched, kTest, kTitle, kTo,
    kTrace, kUse, kVar, kWith, kWork, kFirstAlone,
};
// clang-format on

// A cue that is a whole match by itself: the pattern's number follows.
constexpr std::uint32_t alone(GatingPattern p) { return kFirstAlone + static_cast<std::uint32_t>(p); }

struct CueWords {
    std::uint32_t cue;
    std::string_view words;
};

constexpr CueWords kCueWords[] = {
    {kAm, "am"},
    {kAt, "at"},
    {kBranch, "branch checkout merge into from"},
    {kChanged, "changed"},
    {kClass, "class"},
    {kConfiguration, "configuration"},
    {kDecided, "decided"},
    {kDef, "def"},
    {kDepends, "depends"},
    {kDescribe, "describe"},
    {kEnv, "env environment"},
    {kErrorWord, "error"},
    {kErrorNoun, "errors response responses"},
    {kException, "exception"},
    {kFavorite, "favorite"},
    {kFunc, "func"},
    {kGo, "go"},
    {kGoWord, "fmt generate get run vet"},
    {kGoroutine, "goroutine"},
    {kHave, "have"},
    {kHead, "head"},
    {kHttp, "http status code"},
    {kI, "i"},
    {kIn, "in"},
    {kInstead, "instead"},
    {kIs, "is"},
    {kIt, "it"},
    {kJson, "json"},
    {kLike, "prefer like love enjoy"},
    {kLive, "live"},
    {kMain, "main master"},
    {kMake, "make"},
    {kMakeWord, "all build check clean install"},
    {kMap, "map"},
    {kMigrated, "migrated"},
    {kMod, "mod"},
    {kMy, "my"},
    {kOn, "on"},
    {kOrigin, "origin"},
    {kOut, "out"},
    {kPackage, "package"},
    {kPanic, "panic"},
    {kReplaced, "replaced"},
    {kRole, "manager teammate friend colleague"},
    {kRolled, "rolled"},
    {kSet, "set"},
    {kShell, "git npm pnpm yarn docker kubectl"},
    {kStack, "stack"},
    {kStandardize, "standardize"},
    {kSwitched, "switched"},
    {kTest, "test"},
    {kTitle, "mr mrs ms dr prof"},
    {kTo, "to"},
    {kTrace, "trace"},
    {kUse, "use"},
    {kVar, "var"},
    {kWith, "with"},
    {kWork, "work"},
    {alone(GatingPattern::stack_trace), "traceback"},
    {alone(GatingPattern::resolution), "fixed resolved patched corrected unblocked"},
    {alone(GatingPattern::milestone), "deployed merged released shipped"},
    {alone(GatingPattern::config_change), "configured"},
    {alone(GatingPattern::data_structure), "struct interface type enum"},
    {alone(GatingPattern::dependency), "import require dependency"},
};

const WordTable& cue_table() {
    static const WordTable table = [] {
        std::vector<WordTable::Entry> entries;
        for (const CueWords& cue : kCueWords) {
            for (std::string_view rest = cue.words; !rest.empty();) {
                const std::size_t length = std::min(rest.find(' '), rest.size());
                entries.push_back({folded_key(rest.substr(0, length)), cue.cue});
                rest.remove_prefix(std::min(length + 1, rest.size()));
            }
        }
        return WordTable(entries);
    }();
    return table;
}

bool is_white_space(std::uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

std::string_view strip_white_space(std::string_view text) noexcept {
    const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
    const auto* end = begin + text.size();
    while (begin != end) {
        const CodePoint c = decode_utf8(begin, end);
        if (!is_white_space(c.value)) break;
        begin += c.length;
    }
    while (begin != end) {
        const unsigned char* last = end - 1;
        while (last != begin && end - last < 4 && (*last & 0xC0) == 0x80) --last;
        const CodePoint c = decode_utf8(last, end);
        if (last + c.length != end || !is_white_space(c.value)) break;
        end = last;
    }
    return {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin)};
}

// One text with its words: what each pattern needs to look around.
class PatternScanner::Matcher {
  public:
    Matcher(std::string_view text, const std::vector<Word>& words, bool strict, PatternCounts& out)
        : text_(text), words_(words), strict_(strict), out_(out) {}

    void match_words() {
        std::size_t skip_errors = 0, skip_refs = 0;  // words and bytes before these are part of a match already
        std::size_t use_line = static_cast<std::size_t>(-1), use_end = 0;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const Word& w = words_[i];
            if (w.all & kDigit) numbers(i);
            if (w.all & kHexLower || text_[w.begin] == '0') hashes(w);
            errors(i, skip_errors);
            if (w.begin >= skip_refs) skip_refs = refs(i);
            if (w.cue >= kFirstAlone) {
                out_.counts[w.cue - kFirstAlone] = 1;
            } else if (w.cue == kUse) {
                if (char_at(w.end) == ' ' && use_line != w.line) {
                    use_line = w.line;
                    use_end = w.end;
                }
            } else if (w.cue == kInstead) {
                // "use", a blank, something, a blank, "instead"
                if (use_line == w.line && char_at(w.begin - 1) == ' ' && w.begin >= use_end + 3) {
                    set(GatingPattern::arch_decision);
                }
            } else if (w.cue != kNone) {
                phrases(i);
            }
            if (strict_) strict_words(i);
        }
    }

    void match_parenthesis(std::size_t at, const Word& before, bool blanks_between) {
        if (class_of(text_[before.begin]) & kDigit) return;
        if (strict_ && (at != before.end || text_.substr(at + 1, 2) == "s)")) return;
        if (at != before.end && !blanks_between) return;
        ++out_[GatingPattern::function_ref];
        set(GatingPattern::function_def);
    }

    void match_slashes() {
        comments();
        if (strict_) {
            strict_tokens();
        } else {
            paths();
            endpoints();
        }
    }

    void match_dollar(std::size_t at) {
        std::size_t line = at;
        while (line > 0 && text_[line - 1] != '\n' && is_blank(text_[line - 1])) --line;
        if (line > 0 && text_[line - 1] != '\n') return;
        if (strict_) {
            const auto between = text_.substr(line, at - line);
            if (!is_gap(char_at(at + 1)) || !std::all_of(between.begin(), between.end(), is_gap)) return;
        }
        set(GatingPattern::shell_command);
    }

    void match_fence(std::size_t first) {
        const std::size_t close = text_.find("```", first + 4);
        if (close != std::string_view::npos) set(GatingPattern::code_fence);
    }

  private:
    void set(GatingPattern p) { out_[p] = 1; }
    char char_at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
    bool word_at(std::size_t i) const { return i < text_.size() && is_word(text_[i]); }
    std::string_view view(const Word& w) const { return text_.substr(w.begin, w.end - w.begin); }
    std::uint32_t cue(std::size_t i) const { return i < words_.size() ? words_[i].cue : std::uint32_t{kNone}; }

    // Is word i followed by one space and another word?
    bool spaced(std::size_t i) const {
        return i + 1 < words_.size() && words_[i + 1].begin == words_[i].end + 1 && text_[words_[i].end] == ' ';
    }
    std::uint32_t next_cue(std::size_t i) const { return spaced(i) ? words_[i + 1].cue : std::uint32_t{kNone}; }

    // Is the word after word i reached over one or more characters of a kind?
    template <class Kind>
    bool reached(std::size_t i, Kind kind) const {
        if (i + 1 >= words_.size()) return false;
        const auto between = text_.substr(words_[i].end, words_[i + 1].begin - words_[i].end);
        return !between.empty() && std::all_of(between.begin(), between.end(), kind);
    }
    bool adjoined(std::size_t i, char by) const {
        return i + 1 < words_.size() && words_[i + 1].begin == words_[i].end + 1 && text_[words_[i].end] == by;
    }

    bool is_name(const Word& w) const {
        if (w.end - w.begin < 2 || !(w.all & kLetter)) return false;
        if (!strict_) return true;
        const auto rest = view(w).substr(1);
        return !(class_of(text_[w.begin]) & kLower) &&
               std::all_of(rest.begin(), rest.end(), [](char c) { return (class_of(c) & kLower) != 0; });
    }
    bool is_hash(const Word& w) const {
        const std::size_t length = w.end - w.begin;
        if (!(w.all & kHexLower) || length < 7 || length > 40) return false;
        return !strict_ || ((w.some & kDigit) && (w.some & kLetter));
    }
    bool is_status(const Word& w) const {
        return w.end - w.begin == 3 && (w.all & kDigit) && (text_[w.begin] == '4' || text_[w.begin] == '5');
    }

    void numbers(std::size_t i) {
        set(GatingPattern::quantity);
        const auto digits = [this](std::size_t word, std::size_t least, std::size_t most) {
            const std::size_t length = words_[word].end - words_[word].begin;
            return (words_[word].all & kDigit) && length >= least && length <= most;
        };
        if (adjoined(i, '-') && adjoined(i + 1, '-') && digits(i, 4, 4) && digits(i + 1, 2, 2) && digits(i + 2, 2, 2)) {
            set(GatingPattern::date);
        }
        if (adjoined(i, '/') && adjoined(i + 1, '/') && digits(i, 1, 2) && digits(i + 1, 1, 2) && digits(i + 2, 2, 4)) {
            set(GatingPattern::date);
        }
    }

    void hashes(const Word& w) {
        const auto word = view(w);
        const bool prefixed = word.size() > 2 && word.starts_with("0x") &&
                              std::all_of(word.begin() + 2, word.end(), [](char c) { return class_of(c) & kHex; });
        if (prefixed || is_hash(w)) set(GatingPattern::hex_or_hash);
    }

    void errors(std::size_t i, std::size_t& skip) {
        const Word& w = words_[i];
        if (i < skip) return;
        const auto word = view(w);
        const bool http = word.size() == 7 && (w.some & kDigit) &&
                          is_status({w.end - 3, w.end, 0, 0, class_of(word[6]), 0}) &&
                          (class_of(word[4]) & class_of(word[5]) & kDigit) && same_letters(word.substr(0, 4), "http");
        bool hit;
        if (!strict_) {
            hit = http || is_status(w) || (word.size() >= 3 && (word[0] | 0x20) == 'e');
        } else if (word.size() >= 3 && word[0] == 'E' && (w.all & kCapitalName)) {
            hit = true;
        } else if ((w.cue == kHttp || w.cue == kErrorWord) && i + 1 < words_.size() && is_status(words_[i + 1]) &&
                   reached(i, [](char c) { return is_gap(c) || c == ':'; })) {
            hit = true;
            skip = i + 2;
        } else {
            hit =
                http || (is_status(w) && (cue(i + 1) == kErrorWord || cue(i + 1) == kErrorNoun) && reached(i, is_gap));
        }
        out_[GatingPattern::error_code] += hit;
    }

    static bool same_letters(std::string_view word, std::string_view lower) {
        return std::equal(word.begin(), word.end(), lower.begin(), lower.end(),
                          [](char a, char b) { return (a | 0x20) == b; });
    }

    // Counts the git reference that starts at word i, if any; returns where it ends.
    std::size_t refs(std::size_t i) {
        const Word& w = words_[i];
        std::size_t end = 0;
        if (is_hash(w) || (w.cue == kHead && view(w) == "HEAD")) {
            end = w.end;
        } else if (w.cue == kMain && (w.all & kLower)) {
            const bool said =
                !strict_ || (i + 1 < words_.size() && view(words_[i + 1]) == "branch" && reached(i, is_gap));
            if (said) end = w.end;
        } else if (strict_ && (w.cue == kBranch || w.cue == kTo || w.cue == kOn) && (w.all & kLower)) {
            if (cue(i + 1) == kMain && (words_[i + 1].all & kLower) && reached(i, is_gap)) end = words_[i + 1].end;
        } else if (w.cue == kOrigin && (w.all & kLower) && char_at(w.end) == '/') {
            std::size_t last = w.end;  // past the last word character of the path
            for (std::size_t at = w.end + 1; at < text_.size() && is_token(text_[at]); ++at) {
                if (is_word(text_[at])) last = at + 1;
            }
            if (last > w.end) end = last;
        }
        out_[GatingPattern::git_ref] += end > 0;
        return end;
    }

    void phrases(std::size_t i) {
        const Word& w = words_[i];
        const std::uint32_t next = next_cue(i);
        switch (w.cue) {
            case kPanic:
            case kException:
                if (char_at(w.end) == ':' && word_at(w.end + 1)) set(GatingPattern::stack_trace);
                break;
            case kGoroutine:
                if (i + 1 < words_.size() && (words_[i + 1].all & kDigit) && reached(i, is_blank)) {
                    set(GatingPattern::stack_trace);
                }
                break;
            case kStack:
                if (next == kTrace) set(GatingPattern::stack_trace);
                break;
            case kAt:
                if (place_and_line(w.end)) set(GatingPattern::stack_trace);
                break;
            case kTitle:
                if (title_and_name(i)) set(GatingPattern::human_name);
                break;
            case kI:
                if (next == kLike) set(GatingPattern::preference);
                if (next == kAm || next == kHave || (next == kWork && next_cue(i + 1) == kAt) ||
                    (next == kLive && next_cue(i + 1) == kIn)) {
                    set(GatingPattern::fact_assertion);
                }
                break;
            case kMy:
                if (next == kFavorite) set(GatingPattern::preference);
                if (spaced(i) && next_cue(i + 1) == kIs) set(GatingPattern::fact_assertion);
                if (next == kRole && spaced(i + 1) && is_name(words_[i + 2])) set(GatingPattern::human_name);
                break;
            case kSwitched:
            case kMigrated:
            case kDecided:
                if (next == kTo) set(GatingPattern::arch_decision);
                break;
            case kReplaced:
                if (next == kWith) set(GatingPattern::arch_decision);
                break;
            case kStandardize:
                if (next == kOn) set(GatingPattern::arch_decision);
                break;
            case kRolled:
                if (next == kOut) set(GatingPattern::milestone);
                break;
            case kSet:
                if (spaced(i) && next_cue(i + 1) == kTo) set(GatingPattern::config_change);
                break;
            case kConfiguration:
                if (next == kChanged) set(GatingPattern::config_change);
                break;
            case kEnv:
                if (next == kVar) set(GatingPattern::config_change);
                break;
            case kMap:
                if (char_at(w.end) == '[' && word_at(w.end + 1)) set(GatingPattern::data_structure);
                break;
            case kDepends:
                if (next == kOn) set(GatingPattern::dependency);
                break;
            case kPackage:
                if (adjoined(i, '.') && words_[i + 1].cue == kJson) set(GatingPattern::dependency);
                break;
            case kGo:
                if (adjoined(i, '.') && words_[i + 1].cue == kMod) set(GatingPattern::dependency);
                [[fallthrough]];
            case kShell:
            case kMake:
                if (!strict_ && (w.all & kLower)) set(GatingPattern::shell_command);
                break;
            case kIt:
            case kDescribe:
            case kTest:
                if (char_at(w.end) == '(' && word_at(w.end + 1)) set(GatingPattern::test_case);
                break;
            case kFunc:
                if (spaced(i) && words_[i + 1].end - words_[i + 1].begin > 4 &&
                    same_letters(view(words_[i + 1]).substr(0, 4), "test")) {
                    set(GatingPattern::test_case);
                }
                [[fallthrough]];
            case kDef:
            case kClass:
                if (!strict_ && (w.all & kLower)) set(GatingPattern::function_def);
                break;
            default:
                break;
        }
    }

    // After "at": blanks, something free of blanks and colons, a colon, and a number that ends there.
    bool place_and_line(std::size_t at) const {
        const std::size_t place = skip_blanks(at);
        if (place == at) return false;
        std::size_t colon = place;
        while (colon < text_.size() && text_[colon] != ':' && !is_blank(text_[colon])) ++colon;
        if (colon == place || char_at(colon) != ':') return false;
        std::size_t end = colon + 1;
        while (class_of(char_at(end)) & kDigit) ++end;
        return end > colon + 1 && !word_at(end);
    }
    std::size_t skip_blanks(std::size_t at) const {
        while (at < text_.size() && is_blank(text_[at])) ++at;
        return at;
    }

    bool title_and_name(std::size_t i) const {
        const std::size_t after = words_[i].end + (char_at(words_[i].end) == '.');
        const std::size_t name = skip_blanks(after);
        return name > after && i + 1 < words_.size() && words_[i + 1].begin == name && is_name(words_[i + 1]);
    }

    void strict_words(std::size_t i) {
        const Word& w = words_[i];
        if (!(w.all & kLower) || w.cue == kNone) return;
        const bool gap = i + 1 < words_.size() && reached(i, is_gap);
        const char first = gap ? text_[words_[i + 1].begin] : '\0';
        if ((w.cue == kFunc || w.cue == kDef) && gap && !(class_of(first) & kDigit)) set(GatingPattern::function_def);
        if (w.cue == kClass && gap && first >= 'A' && first <= 'Z') set(GatingPattern::function_def);
        if (w.cue != kShell && w.cue != kGo && w.cue != kMake) return;
        std::size_t line = w.begin;
        while (line > 0 && is_gap(text_[line - 1])) --line;
        if (line > 0 && text_[line - 1] != '\n') return;
        std::size_t argument = w.end;
        while (is_gap(char_at(argument))) ++argument;
        if (argument == w.end) return;
        const bool option = char_at(argument) == '-';
        const bool lower_word = gap && (words_[i + 1].all & kLower);
        const std::uint32_t next = lower_word ? words_[i + 1].cue : std::uint32_t{kNone};
        const bool both =
            next == kTest || (lower_word && (view(words_[i + 1]) == "build" || view(words_[i + 1]) == "install"));
        if ((w.cue == kShell && (option || (class_of(char_at(argument)) & kLower))) ||
            (w.cue == kGo && (next == kGoWord || next == kMod || both)) ||
            (w.cue == kMake && (option || next == kMakeWord || both))) {
            set(GatingPattern::shell_command);
        }
    }

    void comments() {
        for (std::size_t at = text_.find('/'); at != std::string_view::npos; at = text_.find('/', at + 1)) {
            const auto rest = text_.substr(at, 3);
            if (rest == "///" || rest == "/**" || (rest.starts_with("//") && (at == 0 || text_[at - 1] == '\n'))) {
                set(GatingPattern::doc_comment);
                return;
            }
        }
    }

    // Chains of names joined by single slashes; one match each.
    void paths() {
        bool in_chain = false;
        for (std::size_t at = 0; at < text_.size(); ++at) {
            if (text_[at] == '/' && at > 0 && is_path(text_[at - 1]) && at + 1 < text_.size() &&
                is_path(text_[at + 1])) {
                out_[GatingPattern::file_path] += !in_chain;
                in_chain = true;
            } else if (!is_path(text_[at])) {
                in_chain = false;
            }
        }
    }

    void endpoints() {
        std::size_t free = 0;  // where the last match ended
        for (std::size_t at = text_.find('/'); at != std::string_view::npos; at = text_.find('/', free)) {
            const std::size_t url = url_before(at);
            if (url >= free && url < at) {
                free = past_url(at);
                ++out_[GatingPattern::url_or_endpoint];
            } else if (at + 1 < text_.size() && is_endpoint(text_[at + 1])) {
                free = at + 1;
                while (free < text_.size() && is_endpoint(text_[free])) ++free;
                ++out_[GatingPattern::url_or_endpoint];
            } else {
                free = at + 1;
            }
        }
    }
    // Start of the URL whose first slash is at `at`; `at` itself when there is none.
    std::size_t url_before(std::size_t at) const {
        if (char_at(at + 1) != '/' || at + 2 >= text_.size() || is_blank(text_[at + 2])) return at;
        for (const std::string_view scheme : {std::string_view("http:"), std::string_view("https:")}) {
            if (at >= scheme.size() && text_.substr(at - scheme.size(), scheme.size()) == scheme) {
                return at - scheme.size();
            }
        }
        return at;
    }
    std::size_t past_url(std::size_t at) const {
        while (at < text_.size() && !is_blank(text_[at])) ++at;
        return at;
    }

    void strict_tokens() {
        for (std::size_t at = 0; at < text_.size();) {
            if (!is_token(text_[at])) {
                ++at;
                continue;
            }
            if (text_[at] == 'h') {
                const std::size_t slash = at + (text_.substr(at, 6) == "https:" ? 6 : 5);
                if (slash < text_.size() && text_[slash] == '/' && url_before(slash) == at) {
                    ++out_[GatingPattern::url_or_endpoint];
                    at = past_url(at);
                    continue;
                }
            }
            std::size_t end = at;
            while (end < text_.size() && is_token(text_[end])) ++end;
            strict_token(text_.substr(at, end - at));
            at = end;
        }
    }

    void strict_token(std::string_view token) {
        token = token.substr(0, token.find_last_not_of('.') + 1);
        if (token.find('/') == std::string_view::npos) return;
        const bool rooted = token.front() == '/', closed = token.back() == '/';
        const auto names = token.substr(rooted);
        if (names.empty() || names.front() == '/' || names.find("//") != std::string_view::npos) return;
        const std::size_t first = names.find('/');
        if (rooted && (class_of(names[0]) & kLetter) && std::min(first, names.size()) >= 2) {
            ++out_[GatingPattern::url_or_endpoint];
        }
        if (closed || first == std::string_view::npos) return;
        const auto head = names.substr(0, first), last = names.substr(names.rfind('/') + 1);
        if (rooted || head == "." || head == ".." || has_extension(last)) ++out_[GatingPattern::file_path];
    }
    static bool has_extension(std::string_view name) {
        const std::size_t dot = name.rfind('.');
        if (dot == std::string_view::npos || dot == 0 || !is_word(name[dot - 1])) return false;
        const auto extension = name.substr(dot + 1);
        return !extension.empty() && extension.size() <= 8 && (class_of(extension[0]) & kLetter) &&
               std::all_of(extension.begin(), extension.end(),
                           [](char c) { return (class_of(c) & (kLetter | kDigit)) != 0; });
    }

    std::string_view text_;
    const std::vector<Word>& words_;
    bool strict_;
    PatternCounts& out_;
};

PatternCounts PatternScanner::scan(std::string_view text, bool strict) {
    PatternCounts out;
    words_.clear();
    Matcher matcher(text, words_, strict, out);
    const WordTable& cues = cue_table();
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = bytes + text.size();
    std::size_t line = 0, slashes = 0;
    bool only_blanks = true;  // since the last word
    bool fenced = false;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (is_word(c)) {
            std::uint8_t all = 0xFF, some = 0;
            std::size_t past = at;
            for (; past < text.size(); ++past) {
                const std::uint8_t kind = class_of(text[past]);
                if (!(kind & kWord)) break;
                all &= kind;
                some |= kind;
            }
            WordKey key;
            const bool short_enough = fold_word_quickly(bytes + at, past - at, end, key);
            words_.push_back({at, past, line, short_enough ? static_cast<std::uint32_t>(cues[key]) : 0u, all, some});
            only_blanks = true;
            at = past;
            continue;
        }
        switch (c) {
            case '\n':
                ++line;
                break;
            case '(':
                if (!words_.empty()) matcher.match_parenthesis(at, words_.back(), only_blanks);
                break;
            case '/':
                ++slashes;
                break;
            case '$':
                matcher.match_dollar(at);
                break;
            case '`':
                if (!fenced && text.substr(at, 3) == "```") {
                    fenced = true;
                    matcher.match_fence(at);
                }
                break;
            default:
                break;
        }
        only_blanks &= is_blank(c);
        ++at;
    }
    matcher.match_words();
    if (slashes > 0) matcher.match_slashes();
    return out;
}

}  // namespace hsca
