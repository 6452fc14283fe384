#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hsca/vectors/wordpiece.hpp"

using namespace hsca;

namespace {

const std::vector<std::string_view> kTokens = {"[PAD]", "[UNK]", "[MASK]", "un",    "##aff", "##able", "naive",
                                               "cafe",  "##s",   ",",      "world", "日",    "##",     "#"};

std::vector<std::int32_t> encode(std::string_view text) {
    static const WordPiece tokenizer{kTokens};
    std::vector<std::int32_t> ids;
    hsca::Stop stop(nullptr);
    tokenizer.encode(text, ids, stop);
    return ids;
}

bool refuses(std::vector<std::string_view> tokens) {
    try {
        const WordPiece tokenizer{tokens};
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

using Ids = std::vector<std::int32_t>;

}  // namespace

int main() {
    CHECK(encode("") == Ids{});
    CHECK((encode("unaffable") == Ids{3, 4, 5}));
    CHECK((encode("Na\xc3\xafve caf\x65\xcc\x81s,WORLD") == Ids{6, 7, 8, 9, 10}));
    CHECK((encode("world日world") == Ids{10, 11, 10}));
    CHECK((encode("unaffablex un") == Ids{1, 3}));  // a word is known whole or not at all
    CHECK((encode("un[MASK]un[mask]") == Ids{3, 2, 3, 1, 1, 1}));
    CHECK((encode("wor\xc2\xadld wor\xffld wor\x0bld") == Ids{10, 10, 10}));  // dropped, not a space
    CHECK((encode(std::string(100, 's')) == Ids{1}));
    CHECK((encode("un" + std::string(98, 's')) == [] {
        Ids ids{3};
        ids.insert(ids.end(), 98, 8);
        return ids;
    }()));
    CHECK((encode("un" + std::string(99, 's')) == Ids{1}));  // 101 characters
    CHECK((encode("##") == Ids{13, 13}));                    // '#' is punctuation: "##" is never read as a word
    CHECK(refuses({"a", "b"}));
    CHECK(refuses({"[UNK]", "a", "a"}));
    CHECK(!refuses({"[UNK]", "a", "##a"}));
    return check::result();
}
