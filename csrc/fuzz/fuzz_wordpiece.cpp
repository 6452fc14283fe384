// fuzz_wordpiece.cpp -- any bytes as text, over a small vocabulary that is all edges: every id is in the vocabulary,
// tokens of two texts with a space between are the tokens of each, and a text's vector is a unit vector or zero.
#include <cmath>
#include <string_view>
#include <vector>

#include "fuzz.hpp"
#include "hsca/vectors/static_model.hpp"

using namespace hsca;

namespace {

constexpr std::string_view kTokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",  "b",   "ab",  "##b", "##ab",
                                        "##a",   "abab",  "[",     "]",     ".",      "e",  "##e", "i",   "ss",  "1",
                                        "##1",   "日",    "α",     "##α",   "σ",      "ᄒ", "##ᅡ", "##ᆫ", "#",   "##"};
constexpr std::size_t kWidth = 3, kCount = std::size(kTokens);

const WordPiece& tokenizer() {
    static const WordPiece made{std::span<const std::string_view>(kTokens)};
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The first byte says where the text is cut in two.
    std::vector<char> text(data + (size ? 1 : 0), data + size);
    text.shrink_to_fit();  // a sanitizer shall see a read past the end
    const std::string_view view(text.data(), text.size());

    Stop stop(nullptr);
    std::vector<std::int32_t> ids;
    tokenizer().encode(view, ids, stop);
    require(ids.size() <= text.size() * 3, "more tokens than normalized characters");
    for (const std::int32_t id : ids) require(id >= 0 && static_cast<std::size_t>(id) < kCount, "id out of range");

    const std::size_t cut = size && !text.empty() ? data[0] * text.size() / 256 : 0;
    const std::vector<char> first(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut));
    std::vector<std::int32_t> apart, together;
    tokenizer().encode({first.data(), first.size()}, apart, stop);
    tokenizer().encode(view.substr(cut), apart, stop);
    const std::string spaced = std::string(first.begin(), first.end()) + " " + std::string(view.substr(cut));
    tokenizer().encode(spaced, together, stop);
    require(apart == together, "a space does not part two texts");

    std::vector<std::int8_t> rows;
    std::vector<float> scales;
    for (std::size_t i = 0; i < kCount * kWidth; ++i) rows.push_back(static_cast<std::int8_t>(i * 37 % 255 - 127));
    for (std::size_t i = 0; i < kCount; ++i) scales.push_back(static_cast<float>(i % 5) * 0.25f);
    const std::string_view texts[] = {view, spaced, view};
    std::vector<float> out(3 * kWidth), prefix(3 * 2);
    require(embed_texts(tokenizer(), {rows, scales, kWidth}, texts, kWidth, 1, nullptr, out), "stopped");
    require(embed_texts(tokenizer(), {rows, scales, kWidth}, texts, 2, 2, nullptr, prefix), "stopped");
    double norm = 0.0;
    for (std::size_t i = 0; i < kWidth; ++i) {
        norm += static_cast<double>(out[i]) * out[i];
        require(out[i] == out[2 * kWidth + i], "a vector depends on its neighbours");
    }
    require(norm == 0.0 || std::abs(norm - 1.0) < 1e-5, "not a unit vector");
    for (const float x : prefix) require(std::isfinite(x), "a prefix is not finite");
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    return {"",
            "9ab a\xc3\xa9 b.",
            "\x80[MASK]ab[UNK][CLS]",
            "\x40\xed\x95\x9c\xe6\x97\xa5 A\xcc\x81",
            "1" + std::string(130, 'a'),
            "\x7f\xc4\xb0\xe1\xba\x9e\xe2\x84\xaa\xef\xbf\xbd\xff\xc2"};
}
