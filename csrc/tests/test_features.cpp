// features.hpp: a plain version of the definition is the oracle for ASCII texts; the rest is what holds for any bytes.
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "hsca/text/features.hpp"
#include "hsca/text/words.hpp"

using namespace hsca;

namespace {

std::vector<float> features(std::string_view text, std::size_t dim) {
    std::vector<float> row(dim, -1.0f);
    hashed_features(text, row);
    return row;
}

double squared_length(const std::vector<float>& row) {
    double sum = 0.0;
    for (const float x : row) sum += static_cast<double>(x) * static_cast<double>(x);
    return sum;
}

// One sentence of lower-case words, with single spaces between them and marks at its end.
std::vector<float> expected(const std::vector<std::string>& words, std::string_view marks, std::size_t dim) {
    std::vector<double> counts(dim, 0.0);
    double total = 0.0;
    const auto add = [&](std::uint64_t value) {
        counts[static_cast<std::size_t>((mix(value) >> 32) * dim >> 32)] += 1.0;
        total += 1.0;
    };
    std::uint64_t last = 0x27D4EB2F165667C5ull;
    for (const std::string& word : words) {
        WordKey key{0, 0};
        std::memcpy(&key, word.data(), word.size());
        const std::uint64_t hash = hash_key(key);
        add(hash * 0x9E3779B97F4A7C15ull);
        add((last * 0xC2B2AE3D27D4EB4Full) ^ hash);
        last = hash;
        const std::string padded = ' ' + word + ' ';
        for (std::size_t i = 0; i + 4 <= padded.size(); ++i) {
            std::uint32_t piece;
            std::memcpy(&piece, padded.data() + i, 4);
            add((piece + 1ull) * 0x165667B19E3779F9ull);
        }
    }
    for (const char mark : marks) add((static_cast<unsigned char>(mark) + 1ull) * 0xD6E8FEB86659FD93ull);
    std::vector<float> row(dim, 0.0f);
    for (std::size_t i = 0; i < dim && total > 0.0; ++i) row[i] = static_cast<float>(std::sqrt(counts[i] / total));
    return row;
}

void equals_the_definition() {
    check::Random random{7};
    const std::vector<std::string> vocabulary = {"a",    "it",    "cat",   "boat",           "river",
                                                 "well", "light", "stone", "extraordinaries"};
    const std::string_view endings[] = {"", ".", "!", "?!", "!!!"};
    for (int round = 0; round < 200; ++round) {
        std::vector<std::string> words;
        std::string text;
        for (std::size_t n = random.below(12); n > 0; --n) {
            words.push_back(random.of(vocabulary));
            text += (text.empty() ? "" : " ") + words.back();
        }
        const std::string_view marks = random.of(endings);
        text += marks;
        for (const std::size_t dim : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
            CHECK(features(text, dim) == expected(words, marks, dim));
        }
    }
}

void case_and_order() {
    CHECK(features("The CAT sat.", 512) == features("the cat sat.", 512));
    CHECK(features("the cat sat.", 512) != features("the sat cat.", 512));
    CHECK(features("The cat sat. It ate.", 4096) != features("The cat sat it ate..", 4096));  // pairs end with it
    CHECK(features("so good", 512) != features("so good!", 512));
}

void empty_and_single_bin() {
    for (const std::string_view text : {std::string_view{}, std::string_view{"  \n\t"}, std::string_view{"\0\0", 2}}) {
        CHECK(features(text, 64) == std::vector<float>(64, 0.0f));
    }
    CHECK(features("word", 1) == std::vector<float>{1.0f});
}

void any_bytes() {
    check::Random random{11};
    const std::string_view pieces[] = {"word", "\xE6\x97\xA5", "\xE6\x9C\xAC\xE8\xAA\x9E",
                                       "\xFF", "\xE6\x97",     "\xC3\xA9",
                                       "''",   "snake_case",   ". ",
                                       "\n\n", "\xC2\xAD",     "3.14"};
    for (int round = 0; round < 500; ++round) {
        std::string text;
        for (std::size_t n = random.below(40); n > 0; --n) {
            if (random.below(4)) {
                text += random.of(pieces);
            } else {
                text += static_cast<char>(random.below(256));
            }
        }
        const std::vector<char> tight(text.begin(), text.end());  // so that a sanitizer sees the least over-read
        const std::vector<float> row = features({tight.data(), tight.size()}, 256);
        const double length = squared_length(row);
        CHECK(length == 0.0 || std::abs(length - 1.0) < 1e-5);
        for (const float x : row) CHECK(x >= 0.0f && x <= 1.0f);
        CHECK(row == features(text, 256));
    }
}

void long_lines_take_linear_time() {
    const auto seconds = [](const std::string& text) {
        const auto start = std::chrono::steady_clock::now();
        CHECK(std::abs(squared_length(features(text, 4096)) - 1.0) < 1e-5);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    CHECK(seconds(std::string(4'000'000, '!')) < 5.0);
    CHECK(seconds(std::string(4'000'000, 'a')) < 5.0);
    std::string text;
    while (text.size() < 4'000'000) text += "\xE6\x97\xA5";
    CHECK(seconds(text) < 5.0);
}

void refuses_impossible_rows() {
    std::vector<float> none, many(kMaxFeatures + 1);
    CHECK_THROWS(hashed_features("word", none), std::invalid_argument);
    CHECK_THROWS(hashed_features("word", many), std::invalid_argument);
}

}  // namespace

int main() {
    equals_the_definition();
    case_and_order();
    empty_and_single_bin();
    any_bytes();
    long_lines_take_linear_time();
    refuses_impossible_rows();
    return check::result();
}
