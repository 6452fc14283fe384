// fuzz_arrow.cpp -- an Arrow string array made of any bytes: read_strings gives views inside of the buffers or throws
// std::invalid_argument, and nothing else.
//
// Bytes 0..7: layout, length, offset, null_count, n_buffers, absent buffers, then two that pick how the rest is shared.
// The C data interface gives no buffer sizes, so what cannot be checked by the reader is true here: there are length +
// offset rows, a bit for each, and a data buffer as long as the largest offset, which is therefore taken modulo kData.
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "fuzz.hpp"
#include "hsca/arrow.hpp"

using namespace hsca;

namespace {

constexpr std::int64_t kData = 1000;

// Negative ones stay as they are; the reader must refuse them.
template <class Offset>
void bound_offsets(std::vector<unsigned char>& rows) {
    for (std::size_t at = 0; at + sizeof(Offset) <= rows.size(); at += sizeof(Offset)) {
        Offset value;
        std::memcpy(&value, rows.data() + at, sizeof(Offset));
        if (value > 0) value %= static_cast<Offset>(kData + 1);
        std::memcpy(rows.data() + at, &value, sizeof(Offset));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 8) return 0;
    constexpr StringLayout kLayouts[] = {StringLayout::offsets32, StringLayout::offsets64, StringLayout::views,
                                         StringLayout::unknown};
    const StringLayout layout = kLayouts[data[0] % 4];
    ArrowArray array{};
    array.length = static_cast<std::int8_t>(data[1]) % 64;
    array.offset = static_cast<std::int8_t>(data[2]) % 32;
    array.null_count = static_cast<std::int8_t>(data[3]);
    const auto n_rows =
        static_cast<std::size_t>(std::max<std::int64_t>(array.length, 0) + std::max<std::int64_t>(array.offset, 0));

    std::size_t next = 8;
    const auto take = [&](std::size_t n) {  // the rest of the input, over and over
        std::vector<unsigned char> bytes(n);
        for (unsigned char& byte : bytes) {
            if (next >= size) next = 8;
            byte = size > 8 ? data[next++] : 0;
        }
        return bytes;
    };
    const std::vector<unsigned char> validity = take((n_rows + 7) / 8);
    std::vector<unsigned char> rows = take(layout == StringLayout::offsets32   ? 4 * (n_rows + 1)
                                           : layout == StringLayout::offsets64 ? 8 * (n_rows + 1)
                                                                               : 16 * n_rows);
    // Small numbers, so that some arrays are well formed: high bytes are cleared as byte 6 says.
    const std::size_t word = layout == StringLayout::offsets64 ? 8 : 4;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % word >= 1 + data[6] % 8u && !(layout == StringLayout::views && i % 16 >= 4 && i % 16 < 8)) rows[i] = 0;
    }
    if (layout == StringLayout::offsets32) bound_offsets<std::int32_t>(rows);
    if (layout == StringLayout::offsets64) bound_offsets<std::int64_t>(rows);

    const std::size_t n_data = layout == StringLayout::views ? data[4] % 4 : 1;
    std::vector<std::vector<unsigned char>> texts;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < n_data; ++i) {
        texts.push_back(take(layout == StringLayout::views ? data[7] + i : static_cast<std::size_t>(kData)));
        sizes.push_back(data[7] % 5 == 4 ? -1 : static_cast<std::int64_t>(texts[i].size()));
    }
    std::vector<const void*> buffers{validity.data(), rows.data()};
    for (const auto& text : texts) buffers.push_back(text.data());
    if (layout == StringLayout::views) buffers.push_back(sizes.data());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (data[5] >> i & 1) buffers[i] = nullptr;
    }
    array.buffers = data[5] == 0xFF ? nullptr : buffers.data();
    array.n_buffers =
        data[4] >= 0xF0 ? static_cast<std::int64_t>(data[4]) - 0xF4 : static_cast<std::int64_t>(buffers.size());
    array.n_buffers = std::min(array.n_buffers, static_cast<std::int64_t>(buffers.size()));
    // With fewer buffers than it made, the last of a views array would be taken for its sizes: as untrue as a wrong
    // pointer.
    if (layout == StringLayout::views && array.n_buffers >= 3)
        array.n_buffers = static_cast<std::int64_t>(buffers.size());

    const std::size_t n = array.length > 0 ? static_cast<std::size_t>(array.length) : 0;
    std::vector<std::string_view> views(n);
    std::vector<std::uint8_t> valid(n, 9);
    try {
        read_strings(array, layout, std::numeric_limits<std::int64_t>::max() / 2, views, valid);
    } catch (const std::invalid_argument&) {
        return 0;
    }
    require(layout != StringLayout::unknown && array.length >= 0 && array.offset >= 0, "a bad array was read");
    volatile char sink = 0;
    for (std::size_t i = 0; i < n; ++i) {
        require(valid[i] <= 1 && (valid[i] || views[i].empty()), "a null row has text");
        for (const char c : views[i]) sink = c;  // a sanitizer sees what lies outside
    }
    static_cast<void>(sink);
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    std::string rising;
    for (int i = 0; i < 80; ++i) rising += std::string(1, static_cast<char>(i)) + std::string(3, '\0');
    std::vector<std::string> seeds;
    for (char layout = 0; layout < 4; ++layout) {
        seeds.push_back(std::string{layout, 3, 1, 0, 2, 0, 0, 64} + rising);
        seeds.push_back(std::string{layout, 20, 0, -1, 3, 1, 0, 64} + rising);
        seeds.push_back(std::string{layout, 9, 0, -1, 3, 1, 0, 64} + std::string(64, 5));
        seeds.push_back(std::string{layout, 2, 7, -1, 1, 1, 7, 99} + std::string(200, '\0'));
    }
    return seeds;
}
