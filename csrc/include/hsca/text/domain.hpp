// domain.hpp -- Layer 2: what a text is about. docs/formulas.md has the reasons, the data and the quality.
//
// A text of n words has V verse breaks: line ends that end no sentence and are followed by a capital.
//   sums         S_t = sum over words of q[hash_key(word) mod n_buckets][t],  q int8
//   evidence     e_t = (scale_t S_t + break_t V) / (n + half_length)
//   probability  p_t = 1 / (1 + exp(-(bias_t + e_t)))
//   tag t        p_t >= threshold_t, and at least kLeastEnglish of the words are English ones (coherence.hpp)
// S and V are exact integers, so the order of the words does not matter. half_length keeps a text of a few words near
// the bias, which is below every threshold: unclassified. cross_domain follows from the tags.
//
// The file: "HSCADOM1", uint32 n_buckets (a power of two), uint32 10, float32 half_length, float32[10] scale, bias,
// break, threshold, int8[n_buckets][10] q, uint32 CRC-32 of all before it; little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hsca/text/sentence_words.hpp"

namespace hsca {

inline constexpr std::size_t kDomains = 10;
inline constexpr double kLeastEnglish = 0.1;
inline constexpr std::array<std::string_view, kDomains + 2> kDomainNames = {
    "physics",         "mathematics",    "legal",         "medical",    "poetry",       "narrative",
    "technical_prose", "conversational", "philosophical", "historical", "cross_domain", "unclassified"};
inline constexpr std::uint16_t kContentDomains = (1u << kDomains) - 1;
inline constexpr std::uint16_t kCrossDomain = 1u << kDomains;
inline constexpr std::uint16_t kUnclassified = 1u << (kDomains + 1);

// Bit u of kRelatedDomains[t]: tags t and u together say nothing new, for one is the other's tool or the manner it is
// written in. Every tag is related to itself, and conversational to all: everything may be talked about.
extern const std::array<std::uint16_t, kDomains> kRelatedDomains;

// The content tags of `tags`, with cross_domain when two of them are not related, or unclassified when there are none.
std::uint16_t with_cross_domain(std::uint16_t tags) noexcept;

struct DomainResult {
    std::array<double, kDomains> scores;  // probabilities
    std::array<double, kDomains> sums;    // scale_t S_t + break_t V; those of two pieces add up to the whole's
    std::uint16_t bits;
};

// The weights. Immutable: any number of layers and threads read one.
class DomainModel {
  public:
    static constexpr std::size_t kLanes = 16;  // the ten weights of a bucket, padded to a vector

    // From the bytes of a model file, which are copied. Throws std::invalid_argument that says what is wrong with them.
    explicit DomainModel(std::span<const unsigned char> file);

    double half_length() const noexcept { return half_length_; }

    // m_t: a text has tag t where m_t + e_t >= 0, up to rounding.
    double margin(std::size_t t) const noexcept;

  private:
    friend class DomainLayer;
    struct alignas(kLanes) Row {
        std::int8_t weights[kLanes];
    };
    std::vector<Row> rows_;
    double half_length_;
    std::array<double, kDomains> scale_, bias_, break_, threshold_;
};

// Sentences of one text, then finish(). Reusable: begin() starts the next text. The model must outlive it.
class DomainLayer {
  public:
    explicit DomainLayer(const DomainModel& model) noexcept : model_(&model) { begin(); }

    void begin() noexcept;

    // `words` are those of the sentence text[begin, end); sentences come in text order.
    void add_sentence(const unsigned char* text, std::size_t begin, std::size_t end,
                      std::span<const SentenceWord> words) noexcept;

    DomainResult finish() const noexcept;

  private:
    void count_breaks(const unsigned char* text, std::size_t end) noexcept;

    const DomainModel* model_;
    std::array<std::int64_t, DomainModel::kLanes> sums_;
    std::uint64_t n_words_;
    std::uint64_t n_breaks_;
    std::size_t seen_;  // bytes looked at for breaks
};

}  // namespace hsca
