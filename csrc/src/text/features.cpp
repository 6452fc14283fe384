#include "hsca/text/features.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "hsca/text/byte_class.hpp"
#include "hsca/text/scan.hpp"
#include "hsca/text/words.hpp"

namespace hsca {

namespace {

// One odd number a kind: the same word, pair or mark never shares a hash by construction.
constexpr std::uint64_t kWord = 0x9E3779B97F4A7C15ull;
constexpr std::uint64_t kPair = 0xC2B2AE3D27D4EB4Full;
constexpr std::uint64_t kPiece = 0x165667B19E3779F9ull;
constexpr std::uint64_t kMark = 0xD6E8FEB86659FD93ull;
constexpr std::uint64_t kSentenceStart = 0x27D4EB2F165667C5ull;

bool is_mark(unsigned char c) noexcept {
    return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

class FeatureSink {
  public:
    FeatureSink(const unsigned char* text, std::size_t size, std::size_t dim)
        : text_(text), size_(size), counts_(dim, 0) {}

    void word(std::size_t begin, std::size_t end) {
        add_marks(begin);
        read_ = std::max(read_, end);
        WordKey key;
        std::size_t length = end - begin;
        if (!fold_word_quickly(text_ + begin, length, text_ + size_, key)) {
            const FoldedWord folded = fold_word_slowly({text_ + begin, length}, folded_);
            key = folded.key;
            length = folded.length;
        }
        const std::uint64_t hash = hash_key(key);
        add(hash * kWord);
        add((last_ * kPair) ^ hash);
        last_ = hash;
        if (length <= 16) add_pieces(key, length);
    }

    void sentence(std::size_t, std::size_t) { last_ = kSentenceStart; }
    void paragraph(std::size_t, std::size_t) {}
    bool keep_going() { return true; }

    void finish(std::span<float> row) {
        add_marks(size_);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto count = static_cast<double>(counts_[i]);
            row[i] = counts_[i] ? static_cast<float>(std::sqrt(count / static_cast<double>(total_))) : 0.0f;
        }
    }

  private:
    void add(std::uint64_t value) {
        const std::uint64_t hash = mix(value);
        ++counts_[static_cast<std::size_t>((hash >> 32) * counts_.size() >> 32)];
        ++total_;
    }

    void add_pieces(const WordKey& key, std::size_t length) {
        char padded[18];
        padded[0] = padded[length + 1] = ' ';
        std::memcpy(padded + 1, &key, length);
        for (std::size_t i = 0; i + 4 <= length + 2; ++i) {
            std::uint32_t piece;
            std::memcpy(&piece, padded + i, 4);
            add((piece + 1ull) * kPiece);
        }
    }

    // Words of unspaced scripts overlap, so the next one may begin before what was read.
    void add_marks(std::size_t end) {
        for (; read_ < end; ++read_) {
            if (is_mark(text_[read_])) add((text_[read_] + 1ull) * kMark);
        }
    }

    const unsigned char* text_;
    std::size_t size_;
    std::size_t read_ = 0;  // everything before it has been looked at
    std::uint64_t last_ = kSentenceStart;
    std::uint64_t total_ = 0;
    std::vector<std::uint64_t> counts_;
    std::vector<unsigned char> folded_;
};

}  // namespace

void hashed_features(std::string_view text, std::span<float> row) {
    if (row.empty() || row.size() > kMaxFeatures) {
        throw std::invalid_argument("hashed_features: a row has 1 to 1048576 features");
    }
    const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
    FeatureSink sink(begin, text.size(), row.size());
    scan_text(begin, text.size(), classify_bytes(SimdLevel::baseline), sink);
    sink.finish(row);
}

}  // namespace hsca
