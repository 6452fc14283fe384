#include "hsca/ranking/hybrid.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace hsca {

namespace {

template <class T>
auto kernel_over(const HybridCandidates<T>& c, const HybridTerms<T>& terms, Isa isa) {
    return [&c, &terms, kernel = candidate_kernels<T>(isa).hybrid](std::size_t begin, std::size_t count, T* out) {
        return kernel(c.cosine + begin, c.age + begin, c.scope + begin, c.decay_rate ? c.decay_rate + begin : nullptr,
                      count, terms, out);
    };
}

// Rows that may be among the best, gathered until scoring them is worth a call.
template <class T>
class Shortlist {
  public:
    Shortlist(const HybridCandidates<T>& candidates, const HybridTerms<T>& terms, const CandidateKernels<T>& kernels)
        : candidates_(candidates), terms_(terms), kernels_(kernels) {}

    // Puts the contenders of [begin, begin + count) on the list; true when an input is refused.
    bool add(std::size_t begin, std::size_t count, T floor) {
        const HybridCandidates<T>& c = candidates_;
        std::array<std::uint32_t, kCandidateBlock + kContenderRoom> rows;
        std::size_t found = 0;
        const bool refused = kernels_.hybrid_contenders(c.cosine + begin, c.age + begin, c.scope + begin,
                                                        c.decay_rate ? c.decay_rate + begin : nullptr, count, terms_,
                                                        floor, rows.data(), found);
        for (std::size_t i = 0; i < found; ++i) row_[size_ + i] = begin + rows[i];
        gather(c.cosine, found, cosine_.data());
        gather(c.age, found, age_.data());
        gather(c.scope, found, scope_.data());
        if (c.decay_rate) gather(c.decay_rate, found, decay_rate_.data());
        size_ += found;
        return refused;
    }

    bool is_long() const { return size_ >= kWorthACall; }

    void offer_to(BestRows<T>& best) {
        kernels_.hybrid(cosine_.data(), age_.data(), scope_.data(),
                        candidates_.decay_rate ? decay_rate_.data() : nullptr, size_, terms_, score_.data());
        for (std::size_t i = 0; i < size_; ++i) best.offer(score_[i], static_cast<std::int64_t>(row_[i]));
        size_ = 0;
    }

  private:
    // The last `count` rows of a column.
    template <class Value>
    void gather(const Value* column, std::size_t count, Value* to) const {
        for (std::size_t i = size_; i < size_ + count; ++i) to[i] = column[row_[i]];
    }

    static constexpr std::size_t kWorthACall = 256, kRoom = kWorthACall + kCandidateBlock;
    const HybridCandidates<T>& candidates_;
    const HybridTerms<T>& terms_;
    const CandidateKernels<T>& kernels_;
    std::size_t size_ = 0;
    std::array<T, kRoom> cosine_, age_, decay_rate_, score_;
    std::array<std::uint8_t, kRoom> scope_;
    std::array<std::size_t, kRoom> row_;
};

}  // namespace

template <class T>
void set_hybrid_terms(const double* weights, double delta, const double* decays, const double* scope_weights,
                      std::size_t n_scopes, HybridTerms<T>& terms) {
    if (n_scopes == 0 || n_scopes > kMaxScopes) throw std::invalid_argument("there must be between 1 and 256 scopes");
    constexpr double kMax = std::numeric_limits<T>::max();
    terms = {};
    terms.alpha = static_cast<T>(weights[0]);
    terms.beta = static_cast<T>(weights[1]);
    terms.delta = static_cast<T>(delta);
    for (std::size_t i = 0; i < n_scopes; ++i) {
        terms.rate[i] = static_cast<T>(std::min(decays[i] * 1.44269504088896338700, kMax));  // finite: 0 times it is 0
        terms.weight[i] = static_cast<T>(weights[2] * scope_weights[i]);
    }
    terms.n_scopes = n_scopes;
}

template <class T>
Outcome hybrid_scores(const HybridCandidates<T>& candidates, const HybridTerms<T>& terms, const Workers& workers,
                      T* out) {
    return score_candidates(candidates.n, workers, out, kernel_over(candidates, terms, workers.isa));
}

template <class T>
BestCandidates<T> hybrid_top_k(const HybridCandidates<T>& candidates, const HybridTerms<T>& terms, std::size_t k,
                               const Workers& workers) {
    const CandidateKernels<T>& kernels = candidate_kernels<T>(workers.isa);
    return best_of_ranges<T>(candidates.n, k, workers, [&](BestRows<T>& best, std::size_t begin, std::size_t end) {
        bool refused = false;
        Shortlist<T> shortlist(candidates, terms, kernels);
        for (std::size_t i = begin; i < end; i += kCandidateBlock) {
            refused |= shortlist.add(i, std::min(kCandidateBlock, end - i), best.floor());
            if (shortlist.is_long()) shortlist.offer_to(best);
        }
        shortlist.offer_to(best);
        return refused;
    });
}

#define HSCA_HYBRID(T)                                                                                                 \
    template void set_hybrid_terms(const double*, double, const double*, const double*, std::size_t, HybridTerms<T>&); \
    template Outcome hybrid_scores(const HybridCandidates<T>&, const HybridTerms<T>&, const Workers&, T*);             \
    template BestCandidates<T> hybrid_top_k(const HybridCandidates<T>&, const HybridTerms<T>&, std::size_t,            \
                                            const Workers&);
HSCA_HYBRID(float)
HSCA_HYBRID(double)

}  // namespace hsca
