#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "hsca/arrow.hpp"

using namespace hsca;

namespace {

using Rows = std::vector<std::optional<std::string>>;

// Buffers of exactly the needed size, at an odd address if asked: Arrow only recommends alignment.
struct Built {
    std::vector<char> validity, main, sizes;
    std::vector<std::vector<char>> data;
    std::vector<const void*> buffers;
    ArrowArray array{};
    std::size_t shift = 0;

    void finish(std::size_t length, bool has_sizes) {
        buffers = {validity.empty() ? nullptr : validity.data(), main.data() + shift};
        for (const auto& d : data) buffers.push_back(d.empty() ? nullptr : d.data());
        if (has_sizes) buffers.push_back(sizes.empty() ? nullptr : sizes.data() + shift);
        array.length = static_cast<std::int64_t>(length);
        array.null_count = -1;
        array.n_buffers = static_cast<std::int64_t>(buffers.size());
        array.buffers = buffers.data();
    }
};

template <class T>
void append(std::vector<char>& to, T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    to.insert(to.end(), bytes, bytes + sizeof(T));
}

Built build(const Rows& rows, StringLayout layout, std::size_t shift) {
    Built built;
    built.shift = shift;
    built.main.assign(shift, 'x');
    built.sizes.assign(shift, 'x');
    bool any_null = false;
    std::vector<char> bits((rows.size() + 7) / 8);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        any_null = any_null || !rows[i];
        if (rows[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << i % 8);
    }
    if (any_null) built.validity = bits;
    if (layout == StringLayout::views) {
        built.data.resize(2);  // long texts alternate between them
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::string& text = rows[i] ? *rows[i] : std::string(16, '\xFF');
            std::vector<char> view;
            if (!rows[i]) {
                view.assign(text.begin(), text.end());  // a null row may hold anything
            } else if (text.size() <= 12) {
                append(view, static_cast<std::int32_t>(text.size()));
                view.insert(view.end(), text.begin(), text.end());
                view.resize(16);
            } else {
                auto& data = built.data[i % 2];
                append(view, static_cast<std::int32_t>(text.size()));
                view.insert(view.end(), text.begin(), text.begin() + 4);
                append(view, static_cast<std::int32_t>(i % 2));
                append(view, static_cast<std::int32_t>(data.size()));
                data.insert(data.end(), text.begin(), text.end());
            }
            built.main.insert(built.main.end(), view.begin(), view.end());
        }
        for (const auto& data : built.data) append(built.sizes, static_cast<std::int64_t>(data.size()));
        built.finish(rows.size(), true);
        return built;
    }
    built.data.resize(1);
    const auto put_offset = [&] {
        const std::size_t at = built.data[0].size();
        if (layout == StringLayout::offsets32) {
            append(built.main, static_cast<std::int32_t>(at));
        } else {
            append(built.main, static_cast<std::int64_t>(at));
        }
    };
    put_offset();
    for (const auto& row : rows) {
        if (row) built.data[0].insert(built.data[0].end(), row->begin(), row->end());
        put_offset();
    }
    built.finish(rows.size(), false);
    return built;
}

void read(const ArrowArray& array, StringLayout layout, std::size_t n, std::vector<std::string_view>* out = nullptr,
          std::vector<std::uint8_t>* valid_out = nullptr) {
    std::vector<std::string_view> views(n, "old");
    std::vector<std::uint8_t> valid(n, 9);
    read_strings(array, layout, 0, views, valid);
    if (out) *out = views;
    if (valid_out) *valid_out = valid;
}

constexpr StringLayout kLayouts[] = {StringLayout::offsets32, StringLayout::offsets64, StringLayout::views};

void every_slice() {
    check::Random random{6};
    for (const StringLayout layout : kLayouts) {
        for (const std::size_t n : {0u, 1u, 7u, 8u, 9u, 20u}) {
            for (const bool nulls : {false, true}) {
                Rows rows;
                const std::size_t lengths[] = {0, 1, 4, 11, 12, 13, 64};
                for (std::size_t i = 0; i < n; ++i) {
                    if (nulls && random.below(3) == 0) {
                        rows.push_back(std::nullopt);
                    } else {
                        rows.push_back(std::string(random.of(lengths), static_cast<char>('a' + i)));
                    }
                }
                for (const std::size_t shift : {0u, 1u}) {
                    Built built = build(rows, layout, shift);
                    for (std::size_t offset = 0; offset <= n; ++offset) {
                        for (std::size_t length = 0; offset + length <= n; ++length) {
                            built.array.offset = static_cast<std::int64_t>(offset);
                            built.array.length = static_cast<std::int64_t>(length);
                            std::vector<std::string_view> views;
                            std::vector<std::uint8_t> valid;
                            read(built.array, layout, length, &views, &valid);
                            for (std::size_t i = 0; i < length; ++i) {
                                const auto& row = rows[offset + i];
                                CHECK_EQ(valid[i] != 0, row.has_value());
                                CHECK_EQ(views[i], row ? std::string_view(*row) : std::string_view());
                            }
                        }
                    }
                }
            }
        }
    }
}

template <class Change>
void refused(StringLayout layout, Change change) {
    const Rows rows{std::string("short"), std::string("a text of more than twelve bytes"), std::string("tail")};
    Built built = build(rows, layout, 0);
    read(built.array, layout, 3);  // well before the change
    change(built);
    CHECK_THROWS(read(built.array, layout, 3), std::invalid_argument);
}

template <class T>
void put(Built& built, std::size_t at, T value) {
    std::memcpy(built.main.data() + at, &value, sizeof(T));
}

template <class Offset>
void malformed_offsets(StringLayout layout) {
    constexpr auto most = std::numeric_limits<Offset>::max(), least = std::numeric_limits<Offset>::min();
    for (const Offset bad : {Offset{-1}, least}) {
        refused(layout, [&](Built& b) { put(b, 0, bad); });
        refused(layout, [&](Built& b) { put(b, 3 * sizeof(Offset), bad); });
    }
    refused(layout, [&](Built& b) { put(b, sizeof(Offset), most); });  // the next one is smaller
    refused(layout, [&](Built& b) { put(b, 2 * sizeof(Offset), Offset{4}); });
    refused(layout, [](Built& b) { b.buffers[2] = nullptr; });
}

void malformed() {
    for (const StringLayout layout : kLayouts) {
        for (const std::int64_t bad :
             {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
            refused(layout, [&](Built& b) { b.array.length = bad; });
            refused(layout, [&](Built& b) { b.array.offset = bad; });
            if (bad < 0) refused(layout, [&](Built& b) { b.array.n_buffers = bad; });
        }
        for (const std::int64_t n : {0, 1, 2}) refused(layout, [&](Built& b) { b.array.n_buffers = n; });
        if (layout != StringLayout::views) refused(layout, [](Built& b) { b.array.n_buffers = 4; });
        refused(layout, [](Built& b) { b.array.length = 2; });  // not the size of the output
        refused(layout, [](Built& b) { b.array.buffers = nullptr; });
        refused(layout, [](Built& b) { b.buffers[1] = nullptr; });
        refused(layout, [](Built& b) { b.array.null_count = 1; });  // but no validity buffer
        Built empty = build({}, layout, 0);
        CHECK_THROWS(read(empty.array, StringLayout::unknown, 0), std::invalid_argument);
        std::vector<std::string_view> views(3);
        std::vector<std::uint8_t> valid(2);
        Built three = build({std::string("a"), std::string("b"), std::string("c")}, layout, 0);
        CHECK_THROWS(read_strings(three.array, layout, 0, views, valid), std::invalid_argument);
        CHECK_THROWS(read(three.array, StringLayout::unknown, 3), std::invalid_argument);
    }
    malformed_offsets<std::int32_t>(StringLayout::offsets32);
    malformed_offsets<std::int64_t>(StringLayout::offsets64);

    const auto bad_view = [](std::size_t at, std::int32_t value) {
        refused(StringLayout::views, [=](Built& b) { put(b, 16 + at, value); });
    };
    constexpr auto most = std::numeric_limits<std::int32_t>::max(), least = std::numeric_limits<std::int32_t>::min();
    for (const std::int32_t value : {-1, least, 33, most}) bad_view(0, value);    // length
    for (const std::int32_t value : {-1, least, 0, 2, most}) bad_view(8, value);  // buffer: 0 is empty, 1 the right one
    for (const std::int32_t value : {-1, least, 1, most}) bad_view(12, value);    // offset
    refused(StringLayout::views, [](Built& b) { b.buffers[3] = nullptr; });
    refused(StringLayout::views, [](Built& b) { b.buffers[4] = nullptr; });
    refused(StringLayout::views, [](Built& b) {
        const std::int64_t size = -5;
        std::memcpy(b.sizes.data() + 8, &size, 8);
    });
}

void row_numbers() {
    Built built = build({std::string("a"), std::string("b")}, StringLayout::offsets32, 0);
    put(built, 8, std::int32_t{0});
    std::vector<std::string_view> views(2);
    std::vector<std::uint8_t> valid(2);
    std::string message;
    try {
        read_strings(built.array, StringLayout::offsets32, 1000, views, valid);
    } catch (const std::invalid_argument& error) {
        message = error.what();
    }
    CHECK(message.find("row 1001") != std::string::npos);
}

}  // namespace

int main() {
    CHECK(string_layout("u") == StringLayout::offsets32);
    CHECK(string_layout("U") == StringLayout::offsets64);
    CHECK(string_layout("vu") == StringLayout::views);
    for (const char* format : {"", "z", "v", "uu", "vz", "i"}) CHECK(string_layout(format) == StringLayout::unknown);
    every_slice();
    malformed();
    row_numbers();
    return check::result();
}
