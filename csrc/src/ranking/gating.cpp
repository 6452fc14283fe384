#include "hsca/ranking/gating.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "hsca/ranking/tokens.hpp"

namespace hsca {

namespace {

using enum GatingPattern;

struct Weighted {
    GatingPattern pattern;
    double weight;
};

constexpr Weighted kTechnical[] = {{code_fence, 0.5},    {file_path, 0.4},       {function_def, 0.4},
                                   {shell_command, 0.4}, {url_or_endpoint, 0.3}, {stack_trace, 0.5},
                                   {hex_or_hash, 0.3}};
constexpr Weighted kDetail[] = {
    {date, 0.3}, {quantity, 0.2}, {human_name, 0.3}, {preference, 0.4}, {fact_assertion, 0.3}};
constexpr Weighted kSpecificity[] = {
    {file_path, 0.4}, {function_ref, 0.3}, {error_code, 0.5}, {git_ref, 0.4}, {url_or_endpoint, 0.3}};
constexpr Weighted kActionability[] = {{arch_decision, 0.5}, {resolution, 0.4}, {milestone, 0.3}, {config_change, 0.4}};
constexpr Weighted kStructure[] = {
    {function_def, 0.4}, {data_structure, 0.3}, {dependency, 0.3}, {test_case, 0.2}, {doc_comment, 0.2}};

double present(std::span<const Weighted> patterns, const PatternCounts& found) {
    double sum = 0.0;
    for (const auto& [pattern, weight] : patterns) sum += found[pattern] ? weight : 0.0;
    return sum;
}

double share_of(std::span<const double> scores, double threshold, double cap) {
    const auto n = std::count_if(scores.begin(), scores.end(),
                                 [=](double score) { return std::clamp(score, 0.0, 1.0) >= threshold; });
    return std::min(static_cast<double>(n) / cap, 1.0);
}

std::span<const double> hits_of(const HitScores& hits, std::size_t row) {
    if (hits.offsets.empty()) return {};
    const auto begin = static_cast<std::size_t>(hits.offsets[row]),
               end = static_cast<std::size_t>(hits.offsets[row + 1]);
    return hits.values.subspan(begin, end - begin);
}

void check(const HitScores& hits, std::size_t n) {
    if (hits.offsets.empty()) return;
    if (hits.offsets.size() != n + 1 || hits.offsets.front() != 0 ||
        !std::is_sorted(hits.offsets.begin(), hits.offsets.end()) ||
        hits.offsets.back() != static_cast<std::int64_t>(hits.values.size())) {
        throw std::invalid_argument("gating: the offsets of hits do not match the texts and scores");
    }
}

}  // namespace

GatingSignals gating_signals(std::string_view text, std::span<const double> memory_scores,
                             std::span<const double> turn_scores, const GatingTerms& terms, PatternScanner& scanner) {
    text = strip_white_space(text);
    const PatternCounts found = scanner.scan(text, terms.strict);
    GatingSignals s{};
    double sum = 0.0;
    for (const double score : memory_scores) sum += std::clamp(score, 0.0, 1.0);
    s.novelty = memory_scores.empty() ? 1.0 : 1.0 - sum / static_cast<double>(memory_scores.size());
    s.frequency = share_of(turn_scores, terms.repeat_threshold, terms.repeat_cap);
    s.saturation = share_of(memory_scores, terms.saturation_threshold, terms.saturation_cap);
    s.repetition = s.frequency * (1.0 - s.saturation);

    s.technical = std::min(present(kTechnical, found) / terms.technical_norm, 1.0);
    s.detail = std::min(present(kDetail, found), 1.0);
    double mentions = 0.0;
    for (const auto& [pattern, weight] : kSpecificity) mentions += weight * found[pattern];
    const auto tokens = static_cast<double>(estimate_tokens(text, TokenRule::sidecar));
    s.specificity = std::min(mentions / std::max(tokens / 100.0, 1.0), 1.0);
    s.actionability = std::min(present(kActionability, found), 1.0);
    s.structure = std::min(present(kStructure, found), 1.0);

    const double* w = terms.conversational_weights;
    // Weights that add up to 1 may round to a little more.
    s.conversational_score = std::min(w[0] * s.novelty + w[1] * s.repetition + w[2] * s.detail, 1.0);
    w = terms.technical_weights;
    s.technical_score = std::min(w[0] * s.specificity + w[1] * s.actionability + w[2] * s.structure, 1.0);
    s.score = std::min((1.0 - s.technical) * s.conversational_score + s.technical * s.technical_score, 1.0);
    return s;
}

bool gating_signals(std::span<const std::string_view> texts, const HitScores& memory, const HitScores& turns,
                    const GatingTerms& terms, std::size_t threads, Stop::Poll poll, std::span<GatingSignals> out) {
    if (out.size() != texts.size()) throw std::invalid_argument("gating: one element a text is needed");
    check(memory, texts.size());
    check(turns, texts.size());
    constexpr std::size_t kGrain = 64, kLong = 4096;
    std::vector<PatternScanner> scanners(worker_count(texts.size(), threads, kGrain));
    Stop stop(poll);
    return parallel_for(texts.size(), threads, kGrain, stop, [&](std::size_t worker, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (texts[i].size() > kLong && stop.requested()) return;
            out[i] = gating_signals(texts[i], hits_of(memory, i), hits_of(turns, i), terms, scanners[worker]);
        }
    });
}

}  // namespace hsca
