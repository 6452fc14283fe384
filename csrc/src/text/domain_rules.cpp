#include "hsca/text/domain_rules.hpp"

#include <cmath>

namespace hsca {

DomainResult domains_by_rules(std::span<const DomainRule> rules, std::span<const CategoryCount> counts,
                              std::size_t n_words) noexcept {
    DomainResult result{};
    unsigned tags = 0;
    const double root = std::sqrt(static_cast<double>(n_words));
    for (const DomainRule& rule : rules) {
        if (rule.category >= counts.size() || rule.tag >= kDomains || n_words == 0) continue;
        const double weight = static_cast<double>(counts[rule.category].weight) / 1000.0;
        result.scores[rule.tag] = weight / root;
        tags |= static_cast<unsigned>(result.scores[rule.tag] >= rule.threshold) << rule.tag;
    }
    result.bits = with_cross_domain(static_cast<std::uint16_t>(tags));
    return result;
}

}  // namespace hsca
