#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hsca/vectors/codes.hpp"
#include "hsca/vectors/dedup.hpp"
#include "hsca/vectors/exact_cascade.hpp"
#include "hsca/vectors/funnel.hpp"
#include "hsca/vectors/mmr.hpp"
#include "hsca/vectors/prefix_norm.hpp"

using namespace hsca;

namespace {

check::Random random_numbers{7};

std::vector<Isa> levels() {
    std::vector<Isa> found;
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (has_isa(isa)) found.push_back(isa);
    }
    return found;
}

// Small integers as floats: sums are exact, so == is.
std::vector<float> integers(std::size_t n) {
    std::vector<float> values(n);
    for (float& x : values) x = static_cast<float>(random_numbers.below(9)) - 4.0f;
    return values;
}

std::vector<float> reals(std::size_t n) {
    std::vector<float> values(n);
    for (float& x : values) x = static_cast<float>(random_numbers() >> 40) * 0x1p-24f - 0.5f;
    return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void dots(Isa isa) {
    const VectorKernels& kernels = vector_kernels(isa);
    for (std::size_t dims = 0; dims <= 70; ++dims) {
        constexpr std::size_t n = 11;
        const std::size_t stride = dims + 3;
        const std::vector<float> query = integers(dims + 1), rows = integers(n * stride);
        std::vector<float> out(n);
        kernels.dot_rows(query.data(), rows.data(), stride, n, dims, out.data());
        for (std::size_t i = 0; i < n; ++i) {
            float sum = 0.0f;
            for (std::size_t j = 0; j < dims; ++j) sum += query[j] * rows[i * stride + j];
            CHECK_EQ(out[i], sum);
        }
        const std::vector<std::uint32_t> which = {3, 0, 10, 3, 7};
        std::vector<float> picked(which.size());
        kernels.dot_picked(query.data(), rows.data(), stride, which.data(), which.size(), dims, picked.data());
        for (std::size_t i = 0; i < which.size(); ++i) CHECK_EQ(picked[i], out[which[i]]);
        // Real numbers: the same bits as at the baseline, four rows at a time or one.
        const std::vector<float> q = reals(dims + 1), r = reals(n * stride);
        std::vector<float> found(n), expected(n);
        kernels.dot_rows(q.data(), r.data(), stride, n, dims, found.data());
        for (std::size_t i = 0; i < n; ++i) {
            vector_kernels(Isa::baseline).dot_rows(q.data(), r.data() + i * stride, stride, 1, dims, &expected[i]);
        }
        CHECK(same_bits(found, expected));
    }
}

void code_sums(Isa isa) {
    const VectorKernels& kernels = vector_kernels(isa);
    for (std::size_t segments = 1; segments <= 3; ++segments) {
        constexpr std::size_t n_groups = 3, n_queries = 5;
        const std::size_t dims = segments * kSegment;
        std::vector<std::uint8_t> groups(n_groups * segments * kGroupBytes);
        std::vector<std::int8_t> queries(n_queries * dims);
        for (std::uint8_t& code : groups) code = static_cast<std::uint8_t>(1 + random_numbers.below(255));
        for (std::int8_t& code : queries)
            code = static_cast<std::int8_t>(static_cast<int>(random_numbers.below(255)) - 127);
        // The extremes, which 16-bit sums would not hold.
        std::fill(groups.begin(), groups.begin() + kGroupBytes, std::uint8_t{255});
        std::fill(queries.begin(), queries.begin() + static_cast<std::ptrdiff_t>(dims), std::int8_t{-127});
        std::vector<std::int32_t> sums(n_queries * n_groups * kGroupRows);
        kernels.code_groups(queries.data(), n_queries, groups.data(), n_groups, segments, n_groups * kGroupRows,
                            sums.data());
        const TierShape shape{dims, segments, segments};
        std::vector<std::int8_t> row(dims);
        for (std::size_t i = 0; i < n_groups * kGroupRows; ++i) {
            leading_codes(shape, groups.data(), i, row.data());
            for (std::size_t q = 0; q < n_queries; ++q) {
                std::int32_t sum = 0;
                for (std::size_t j = 0; j < dims; ++j) sum += row[j] * queries[q * dims + j];
                CHECK_EQ(sums[q * n_groups * kGroupRows + i], sum);
            }
        }
        const std::vector<std::uint32_t> which = {5, 0, 2};
        std::vector<std::int32_t> picked = {1000, -7, 0};
        kernels.code_picked(queries.data(), groups.data(), 100, which.data(), which.size(), picked.data());
        for (std::size_t i = 0; i < which.size(); ++i) {
            std::int32_t sum = std::vector<std::int32_t>{1000, -7, 0}[i];
            for (std::size_t j = 0; j < kSegment; ++j) sum += (groups[which[i] * 100 + j] - kCodeOffset) * queries[j];
            CHECK_EQ(picked[i], sum);
        }
    }
}

void bounds(Isa isa) {
    for (std::size_t n = 0; n <= 50; ++n) {
        std::vector<std::int32_t> sums(n);
        for (std::int32_t& sum : sums) sum = static_cast<std::int32_t>(random_numbers.below(20000)) - 10000;
        const std::vector<float> scale = reals(n), error = reals(n), residual = reals(n);
        const BoundTerms terms{0.001f, 0.9f, 0.4f, 0.01f};
        for (const float* maybe : {residual.data(), static_cast<const float*>(nullptr)}) {
            std::vector<std::uint32_t> found(n + 16);
            found.resize(vector_kernels(isa).select_bounds(sums.data(), scale.data(), error.data(), maybe, n, terms,
                                                           0.2f, found.data()));
            std::vector<std::uint32_t> expected;
            for (std::uint32_t i = 0; i < n; ++i) {
                if (row_bound(sums[i], scale[i], error[i], maybe ? residual[i] : 0.0f, terms) >= 0.2f) {
                    expected.push_back(i);
                }
            }
            CHECK(found == expected);
        }
    }
}

// The bound never falls below a row's score, whatever the rows look like and however many segments are compared.
void bounds_hold(Isa isa) {
    Stop stop(nullptr);
    for (const std::size_t width : {1u, 63u, 64u, 65u, 130u, 200u}) {
        constexpr std::size_t n = 40;
        const std::size_t segments = segment_count(width), later = segments - 1;
        std::vector<float> rows = reals(n * width), query = reals(width);
        for (std::size_t j = 0; j < width; ++j) rows[3 * width + j] = 0.0f;
        rows[4 * width] = 100.0f;
        const TierShape shape{width, 1, segments};
        std::vector<float> inverse(n), scale(n), error(n), lead_residual(n), residual(n * (later + 1));
        std::vector<std::uint8_t> lead(48 * kSegment), tail(n * shape.tail_bytes() + 1);
        const Rows view{rows.data(), n, width, width};
        CHECK(encode_tier(view, 0, n, shape, 1e-8, isa, stop,
                          {inverse.data(), scale.data(), error.data(), lead_residual.data(), residual.data(),
                           lead.data(), tail.data()}));
        std::vector<float> unit(width);
        float* const tiers[] = {unit.data()};
        vector_kernels(isa).prefix_norm(query.data(), &width, 1, 1e-16, tiers, nullptr);
        CodedQuery coded;
        coded.encode(unit.data(), shape, vector_kernels(isa));
        std::vector<float> dots(n);
        vector_kernels(isa).dot_rows(unit.data(), rows.data(), width, n, width, dots.data());
        for (std::size_t i = 0; i < n; ++i) {
            std::vector<std::int8_t> codes(segments * kSegment);
            leading_codes(shape, lead.data(), i, codes.data());
            for (std::size_t j = 0; j < shape.tail_bytes(); ++j) {
                codes[kSegment + j] = static_cast<std::int8_t>(tail[i * shape.tail_bytes() + j] - kCodeOffset);
            }
            std::int32_t sum = 0;
            for (std::size_t m = 1; m <= segments; ++m) {
                for (std::size_t j = (m - 1) * kSegment; j < m * kSegment; ++j) sum += codes[j] * coded.codes[j];
                const float left = m == segments ? 0.0f : m == 1 ? lead_residual[i] : residual[i * (later - 1) + m - 2];
                CHECK(row_bound(sum, scale[i], error[i], left, coded.terms(m, width)) >= dots[i] * inverse[i]);
            }
        }
    }
}

void prefixes(Isa isa) {
    const std::vector<float> row = {3, 4, 0, 12, 0, 0, 0, 0, 0, 84};
    const std::size_t dims[] = {1, 2, 4, 10};
    std::vector<float> a(1), b(2), c(4), d(10);
    float* const tiers[] = {a.data(), b.data(), c.data(), d.data()};
    float inverse[4];
    vector_kernels(isa).prefix_norm(row.data(), dims, 4, 0.0, tiers, inverse);
    CHECK_EQ(a[0], 1.0f);
    CHECK(std::fabs(b[1] - 0.8f) < 1e-7f);
    CHECK(std::fabs(c[3] - 12.0f / 13.0f) < 1e-7f);
    CHECK(std::fabs(d[9] - 84.0f / 85.0f) < 1e-7f);
    CHECK_EQ(inverse[3], 1.0f / 85.0f);
    const std::vector<float> zeros(40);
    std::vector<float> out(40, 9.0f);
    float* const one[] = {out.data()};
    const std::size_t forty = 40;
    vector_kernels(isa).prefix_norm(zeros.data(), &forty, 1, 0.0, one, inverse);
    CHECK(out == zeros);
    CHECK_EQ(inverse[0], 0.0f);
}

void top_k() {
    const std::vector<std::int64_t> ids = {5, 4, 3, 2, 1, 0};
    TopK best(3, ids.data());
    for (std::uint32_t row = 0; row < 6; ++row) best.push(row < 4 ? 1.0f : 0.5f, row);
    std::vector<std::uint32_t> rows;
    for (const ScoredRow& found : best.sorted()) rows.push_back(found.row);
    CHECK(rows == (std::vector<std::uint32_t>{3, 2, 1}));
    // Any order and any number of rows: what a sort gives.
    for (const std::size_t k : {0u, 1u, 7u, 500u}) {
        std::vector<ScoredRow> all;
        TopK kept(k, nullptr);
        for (std::uint32_t row = 0; row < 400; ++row) {
            all.push_back({static_cast<float>(random_numbers.below(50)), row});
            kept.push(all.back().score, row);
        }
        std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
        const auto found = kept.sorted();
        const std::size_t expected = std::min<std::size_t>(k, 400);
        CHECK_EQ(found.size(), expected);
        for (std::size_t i = 0; i < found.size(); ++i) CHECK_EQ(found[i].row, all[i].row);
    }
}

void entry_points_check_sizes() {
    std::vector<float> data(8), out(3);
    const Rows rows{data.data(), 2, 4, 4}, narrow_rows{data.data(), 2, 3, 4};
    CHECK_THROWS(dot_products(rows, narrow_rows, 1, Isa::baseline, nullptr, out), std::invalid_argument);
    std::vector<std::int64_t> picks(3);
    const std::vector<double> relevance(2);
    CHECK_THROWS(mmr(rows, relevance, {}, 1, {}, Isa::baseline, nullptr, picks), std::invalid_argument);
    const std::vector<std::uint32_t> groups = {0, 2};
    picks.resize(2);
    CHECK_THROWS(mmr(rows, relevance, groups, 2, {}, Isa::baseline, nullptr, picks), std::out_of_range);
    std::vector<std::uint32_t> component(1);
    CHECK_THROWS(connected_components(rows, 0.9, 1, Isa::baseline, nullptr, component), std::invalid_argument);
    const std::vector<std::uint32_t> candidates = {0, 2};
    std::vector<std::uint32_t> found(2);
    std::vector<float> scores(2);
    CHECK_THROWS(
        narrow(rows, data.data(), nullptr, rows, candidates, 1, false, 1, Isa::baseline, nullptr, found, scores),
        std::out_of_range);
    const std::size_t dims[] = {3, 3};
    float* const tiers[] = {data.data(), data.data()};
    bool is_finite = false;
    CHECK_THROWS(prefix_tiers(rows, dims, 0.0, 1, Isa::baseline, nullptr, tiers, is_finite), std::invalid_argument);
}

}  // namespace

int main() {
    CHECK(has_isa(best_isa()));
    for (const Isa isa : levels()) {
        dots(isa);
        code_sums(isa);
        bounds(isa);
        bounds_hold(isa);
        prefixes(isa);
    }
    top_k();
    entry_points_check_sizes();
    return check::result();
}
