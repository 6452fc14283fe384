// arrow.hpp -- the Arrow C data interface: its three structures, and string arrays read in place.
// A producer is not trusted: whatever can be checked without knowing a buffer's size is checked before use.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
    int (*get_next)(ArrowArrayStream*, ArrowArray* out);
    const char* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};
}

namespace hsca {

enum class StringLayout { offsets32, offsets64, views, unknown };

// Layout behind an Arrow format string ("u", "U", "vu"), or unknown.
StringLayout string_layout(std::string_view format) noexcept;

// Throws std::invalid_argument unless length, offset and buffer count make sense for the layout.
void check_string_array(const ArrowArray& array, StringLayout layout);

// Points views[i] at row i and sets valid[i]; null rows are empty. Sizes are array.length. Throws std::invalid_argument
// naming the row (counted from `first_row`) when an offset or length points outside its buffer.
void read_strings(const ArrowArray& array, StringLayout layout, std::int64_t first_row,
                  std::span<std::string_view> views, std::span<std::uint8_t> valid);

}  // namespace hsca
