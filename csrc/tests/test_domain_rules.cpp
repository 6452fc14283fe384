// domain_rules.hpp
#include "check.hpp"
#include "hsca/text/domain_rules.hpp"

using namespace hsca;

namespace {

void scores_and_tags() {
    // Tag 2 gets 3 / sqrt(9) = 1, tag 4 gets 0.5 / 3; a rule of an unknown category or tag is passed over.
    const CategoryCount counts[] = {{3, 3000, 1}, {1, 500, 1}};
    const DomainRule rules[] = {{0, 2, 1.0}, {1, 4, 0.2}, {7, 1, 0.0}, {0, 10, 0.0}};
    const DomainResult found = domains_by_rules(rules, counts, 9);
    CHECK_EQ(found.scores[2], 1.0);
    CHECK_EQ(found.scores[4], 0.5 / 3.0);
    CHECK_EQ(found.scores[1], 0.0);
    CHECK_EQ(found.bits, 1u << 2);
}

void nothing_passes() {
    const CategoryCount counts[] = {{0, 0, 0}};
    const DomainRule rules[] = {{0, 2, 1.0}};
    CHECK_EQ(domains_by_rules(rules, counts, 100).bits, kUnclassified);
    CHECK_EQ(domains_by_rules(rules, counts, 0).bits, kUnclassified);
    CHECK_EQ(domains_by_rules({}, {}, 5).bits, kUnclassified);
}

}  // namespace

int main() {
    scores_and_tags();
    nothing_passes();
    return check::result();
}
