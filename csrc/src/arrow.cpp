#include "hsca/arrow.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace hsca {

namespace {

[[noreturn]] void bad_row(std::int64_t row, const std::string& what) {
    throw std::invalid_argument("Arrow string array: row " + std::to_string(row) + " " + what);
}

[[noreturn]] void bad_array(const std::string& what) { throw std::invalid_argument("Arrow string array: " + what); }

bool is_valid(const void* bitmap, std::int64_t i) noexcept {
    return !bitmap || (static_cast<const std::uint8_t*>(bitmap)[i / 8] >> (i % 8) & 1);
}

template <class Offset>
void read_offsets(const ArrowArray& array, std::int64_t first_row, std::span<std::string_view> views,
                  std::span<std::uint8_t> valid) {
    // Buffers need not be aligned.
    const auto* offsets =
        static_cast<const char*>(array.buffers[1]) + array.offset * static_cast<std::int64_t>(sizeof(Offset));
    const auto* data = static_cast<const char*>(array.buffers[2]);
    for (std::size_t i = 0; i < views.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i);
        Offset begin, end;
        std::memcpy(&begin, offsets + i * sizeof(Offset), sizeof(Offset));
        std::memcpy(&end, offsets + (i + 1) * sizeof(Offset), sizeof(Offset));
        if (begin < 0 || end < begin) {
            bad_row(first_row + row, "has offsets " + std::to_string(begin) + " and " + std::to_string(end));
        }
        if (!data && end > begin) bad_row(first_row + row, "has text but the array has no data buffer");
        valid[i] = is_valid(array.buffers[0], array.offset + row);
        views[i] = valid[i] && end > begin ? std::string_view(data + begin, static_cast<std::size_t>(end - begin))
                                           : std::string_view();
    }
}

// 16 bytes a row: length, then either up to 12 bytes of text or 4 bytes of prefix, buffer number and offset.
void read_views(const ArrowArray& array, std::int64_t first_row, std::span<std::string_view> views,
                std::span<std::uint8_t> valid) {
    const auto* rows = static_cast<const char*>(array.buffers[1]) + array.offset * 16;
    const std::int64_t n_data = array.n_buffers - 3;
    const auto* sizes = static_cast<const char*>(array.buffers[array.n_buffers - 1]);
    for (std::size_t i = 0; i < views.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i);
        valid[i] = is_valid(array.buffers[0], array.offset + row);
        views[i] = {};
        if (!valid[i]) continue;  // the 16 bytes of a null row may hold anything
        const char* view = rows + i * 16;
        std::int32_t length, buffer, offset;
        std::memcpy(&length, view, 4);
        std::memcpy(&buffer, view + 8, 4);
        std::memcpy(&offset, view + 12, 4);
        if (length < 0) bad_row(first_row + row, "has length " + std::to_string(length));
        if (length <= 12) {
            views[i] = {view + 4, static_cast<std::size_t>(length)};
            continue;
        }
        std::int64_t size = -1;
        if (buffer >= 0 && buffer < n_data && sizes && array.buffers[2 + buffer])
            std::memcpy(&size, sizes + 8 * std::int64_t{buffer}, 8);
        if (offset < 0 || static_cast<std::int64_t>(offset) + length > size) {
            bad_row(first_row + row, "points outside its data buffers (buffer " + std::to_string(buffer) + ", offset " +
                                         std::to_string(offset) + ", length " + std::to_string(length) + ")");
        }
        views[i] = {static_cast<const char*>(array.buffers[2 + buffer]) + offset, static_cast<std::size_t>(length)};
    }
}

}  // namespace

StringLayout string_layout(std::string_view format) noexcept {
    if (format == "u") return StringLayout::offsets32;
    if (format == "U") return StringLayout::offsets64;
    if (format == "vu") return StringLayout::views;
    return StringLayout::unknown;
}

void check_string_array(const ArrowArray& array, StringLayout layout) {
    if (layout == StringLayout::unknown) bad_array("is not a string array");
    constexpr std::int64_t kMost = std::int64_t{1}
                                   << 56;  // beyond any memory; keeps the arithmetic below from overflowing
    if (array.length < 0 || array.length > kMost) bad_array("length is " + std::to_string(array.length));
    if (array.offset < 0 || array.offset > kMost) bad_array("offset is " + std::to_string(array.offset));
    const bool enough = layout == StringLayout::views ? array.n_buffers >= 3 : array.n_buffers == 3;
    if (!enough || !array.buffers) bad_array("has " + std::to_string(array.n_buffers) + " buffers");
    if (array.length > 0 && !array.buffers[1]) bad_array("has no offsets buffer");
    if (array.length > 0 && array.null_count > 0 && !array.buffers[0])
        bad_array("counts nulls but has no validity buffer");
}

void read_strings(const ArrowArray& array, StringLayout layout, std::int64_t first_row,
                  std::span<std::string_view> views, std::span<std::uint8_t> valid) {
    check_string_array(array, layout);
    if (static_cast<std::size_t>(array.length) != views.size() || valid.size() != views.size()) {
        bad_array("output sizes differ from its length");
    }
    if (views.empty()) return;
    switch (layout) {
        case StringLayout::offsets32:
            return read_offsets<std::int32_t>(array, first_row, views, valid);
        case StringLayout::offsets64:
            return read_offsets<std::int64_t>(array, first_row, views, valid);
        case StringLayout::views:
            return read_views(array, first_row, views, valid);
        case StringLayout::unknown:
            return;  // refused above
    }
}

}  // namespace hsca
