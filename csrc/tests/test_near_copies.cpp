#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "hsca/ranking/near_copies.hpp"

namespace {

double jaccard(std::string a, std::string b, std::size_t n) {  // of ASCII
    const auto grams = [n](std::string text) {
        if (text.size() < n) text.resize(n, '\0');
        std::set<std::string> found;
        for (std::size_t i = 0; i + n <= text.size(); ++i) found.insert(text.substr(i, n));
        return found;
    };
    const auto x = grams(a), y = grams(b);
    std::size_t common = 0;
    for (const auto& gram : x) common += y.count(gram);
    return static_cast<double>(common) / static_cast<double>(x.size() + y.size() - common);
}

}  // namespace

int main() {
    std::vector<std::string> texts{"", "a", "ab", "abc", "the old lamp", "the old lamp.", "an old lamp", "boat"};
    texts.push_back(std::string(200'000, 'x'));
    for (int i = 0; i < 40; ++i) texts.push_back("lamp " + std::to_string(i * i) + " tower " + std::to_string(i % 5));
    std::vector<std::string_view> views(texts.begin(), texts.end());
    std::vector<std::int64_t> first(texts.size());
    std::vector<double> similarity(texts.size());
    for (const std::size_t n : {1u, 2u, 3u, 4u, 7u}) {
        for (const double threshold : {0.3, 0.7, 1.0}) {
            hsca::near_copies(views, n, threshold, first, similarity);
            for (std::size_t row = 0; row < texts.size(); ++row) {
                std::int64_t expected = -1;
                double share = 0.0;
                for (std::size_t i = 0; i < row && expected < 0; ++i) {
                    if (first[i] >= 0) continue;
                    const double found = jaccard(texts[i], texts[row], n);
                    if (found >= threshold) expected = static_cast<std::int64_t>(i), share = found;
                }
                CHECK(first[row] == expected);
                CHECK(similarity[row] == share);
            }
        }
    }
    return check::result();
}
