#include "hsca/memory/brightness.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace hsca {

namespace {

// The largest attention; infinity when any is negative or not finite.
template <class T>
T largest_valid(std::span<const T> attention) noexcept {
    constexpr std::size_t kLanes = 16;
    constexpr T kRefused = std::numeric_limits<T>::infinity();
    T lanes[kLanes] = {};
    const auto take = [](T& lane, T a) {
        const T checked = a >= 0 ? a : kRefused;  // no comparison with NaN holds
        lane = checked > lane ? checked : lane;
    };
    std::size_t i = 0;
    for (; i + kLanes <= attention.size(); i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) take(lanes[lane], attention[i + lane]);
    }
    for (; i < attention.size(); ++i) take(lanes[0], attention[i]);
    return *std::max_element(lanes, lanes + kLanes);
}

// The largest brightness afterwards; lowest() of no tokens. Whatever `attention` holds, nothing overflows: another
// thread may write to it. The choice is made in doubles, which lets the loop become vectors.
template <class T>
std::int32_t score_tokens(const T* attention, std::size_t n, double threshold, std::int32_t most,
                          std::int32_t* brightness) noexcept {
    constexpr double kMostGain = kBrightnessLimit;
    std::int32_t peak = std::numeric_limits<std::int32_t>::lowest();
    for (std::size_t i = 0; i < n; ++i) {
        const double ratio = static_cast<double>(attention[i]) / threshold;
        const double gain = ratio < kMostGain ? ratio : kMostGain;
        // ratio > 1 exactly when attention > threshold: a quotient of neighbouring numbers does not round down to 1.
        const auto change = static_cast<std::int32_t>(ratio > 1.0 ? gain : -1.0);
        const std::int32_t after = std::max(std::min(brightness[i] + change, most), -kBrightnessLimit);
        brightness[i] = after;
        peak = std::max(peak, after);
    }
    return peak;
}

}  // namespace

void check_chunks(const ConversationChunks& chunks, std::size_t n_tokens) {
    const auto offsets = chunks.offsets;
    if (offsets.size() != chunks.live.size() + 1) {
        throw std::invalid_argument("conversation: " + std::to_string(offsets.size()) + " offsets for " +
                                    std::to_string(chunks.live.size()) + " chunks");
    }
    if (offsets.front() != 0 || static_cast<std::uint64_t>(offsets.back()) != n_tokens ||
        !std::is_sorted(offsets.begin(), offsets.end())) {
        throw std::invalid_argument("conversation: offsets must go from 0 up to the number of tokens");
    }
}

template <class T>
StepOutcome score_step(std::span<const T> attention, std::size_t prefix, const ConversationChunks& chunks,
                       std::size_t n_scored, const BrightnessRule& rule, std::span<std::int32_t> brightness,
                       std::span<std::int32_t> peaks) {
    check_chunks(chunks, brightness.size());
    const std::size_t n_chunks = chunks.live.size();
    if (peaks.size() != n_chunks || n_scored > n_chunks) {
        throw std::invalid_argument("score_step: " + std::to_string(n_chunks) + " chunks but " +
                                    std::to_string(peaks.size()) + " peaks, " + std::to_string(n_scored) + " to score");
    }
    std::size_t n_live = 0;
    for (std::size_t c = 0; c < n_chunks; ++c) {
        if (chunks.live[c]) n_live += static_cast<std::size_t>(chunks.offsets[c + 1] - chunks.offsets[c]);
    }
    if (prefix > attention.size() || attention.size() - prefix != n_live) {
        throw std::invalid_argument("score_step: attention for " + std::to_string(attention.size()) + " tokens, not " +
                                    std::to_string(prefix) + " + " + std::to_string(n_live));
    }
    const T largest = largest_valid(attention);
    if (!(largest <= std::numeric_limits<T>::max())) return StepOutcome::refused;
    if (attention.size() < 2) return StepOutcome::unchanged;
    const T sink = rule.sink == Sink::first ? attention.front() : largest;
    const double threshold = (1.0 - static_cast<double>(sink)) / static_cast<double>(attention.size() - 1);
    if (!(threshold > 0.0)) return StepOutcome::unchanged;

    const T* at = attention.data() + prefix;
    bool skips_first = rule.sink == Sink::first && prefix == 0;
    for (std::size_t c = 0; c < n_scored; ++c) {
        if (!chunks.live[c]) continue;
        const auto n = static_cast<std::size_t>(chunks.offsets[c + 1] - chunks.offsets[c]);
        if (n == 0) continue;
        std::int32_t* const tokens = brightness.data() + chunks.offsets[c];
        const std::size_t skipped = std::exchange(skips_first, false);
        const std::int32_t peak = score_tokens(at + skipped, n - skipped, threshold, rule.most, tokens + skipped);
        peaks[c] = skipped ? std::max(peak, tokens[0]) : peak;
        at += n;
    }
    return StepOutcome::scored;
}

template StepOutcome score_step(std::span<const float>, std::size_t, const ConversationChunks&, std::size_t,
                                const BrightnessRule&, std::span<std::int32_t>, std::span<std::int32_t>);
template StepOutcome score_step(std::span<const double>, std::size_t, const ConversationChunks&, std::size_t,
                                const BrightnessRule&, std::span<std::int32_t>, std::span<std::int32_t>);

}  // namespace hsca
