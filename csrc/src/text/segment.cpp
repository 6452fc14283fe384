#include "hsca/text/segment.hpp"

#include "hsca/text/scan.hpp"

namespace hsca {

namespace {
struct SegmentSink {
    Segments& out;
    Stop* stop;
    static void append(std::vector<std::int64_t>& to, std::size_t begin, std::size_t end) {
        to.push_back(static_cast<std::int64_t>(begin));
        to.push_back(static_cast<std::int64_t>(end));
    }
    void word(std::size_t begin, std::size_t end) { append(out.words, begin, end); }
    void sentence(std::size_t begin, std::size_t end) { append(out.sentences, begin, end); }
    void paragraph(std::size_t begin, std::size_t end) { append(out.paragraphs, begin, end); }
    bool keep_going() { return !stop || !stop->requested(); }
};
}  // namespace

bool segment(std::string_view text, SimdLevel level, Segments& out, Stop* stop) {
    out.clear();
    SegmentSink sink{out, stop};
    return scan_text(reinterpret_cast<const unsigned char*>(text.data()), text.size(), classify_bytes(level), sink);
}

}  // namespace hsca
