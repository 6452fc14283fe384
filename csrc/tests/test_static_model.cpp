#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hsca/vectors/static_model.hpp"

using namespace hsca;

namespace {

const std::vector<std::string_view> kTokens = {"[UNK]", "a", "b", "c"};
const std::vector<std::int8_t> kRows = {0, 0, 0, 3, 4, 0, 0, 0, 100, -3, -4, 0};
const std::vector<float> kScales = {0.0f, 2.0f, 0.5f, 2.0f};

std::vector<float> embed(std::vector<std::string_view> texts, std::size_t dim, std::size_t threads) {
    const WordPiece tokenizer{kTokens};
    std::vector<float> out(texts.size() * dim, 7.0f);
    CHECK(embed_texts(tokenizer, {kRows, kScales, 3}, texts, dim, threads, nullptr, out));
    return out;
}

}  // namespace

int main() {
    CHECK((embed({"a", "a a", "b", "", "nothing known", "a c"}, 3, 1) ==
           std::vector<float>{0.6f, 0.8f, 0, 0.6f, 0.8f, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    CHECK((embed({"b", "a b"}, 2, 1) == std::vector<float>{0, 0, 0.6f, 0.8f}));  // a prefix is scaled by itself
    const std::vector<std::string_view> many(1000, "a b a");
    CHECK(embed(many, 3, 4) == embed(many, 3, 1));
    CHECK(embed({}, 3, 2).empty());

    const WordPiece tokenizer{kTokens};
    const std::string_view text[] = {"a"};
    std::vector<float> out(4);
    int refused = 0;
    for (const std::size_t dim : {std::size_t{0}, std::size_t{4}, std::size_t{2}}) {
        try {
            embed_texts(tokenizer, {kRows, kScales, 3}, text, dim, 1, nullptr, out);
        } catch (const std::invalid_argument&) {
            ++refused;
        }
    }
    CHECK(refused == 3);
    return check::result();
}
