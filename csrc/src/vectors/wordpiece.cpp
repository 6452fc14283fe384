#include "hsca/vectors/wordpiece.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "hsca/text/unicode.hpp"

namespace hsca {

namespace {

#include "wordpiece_tables.inc"

enum Normal : std::uint16_t { kWord, kDrop, kSpace, kAlone, kHangul, kMappedFrom };

constexpr std::size_t kMappedBytes = 16, kMaxCharacters = 100;
constexpr std::uint64_t kStartSeed = 0xcbf29ce484222325u, kContinueSeed = 0x84222325cbf29ce4u;

constexpr std::uint64_t add_byte(std::uint64_t hash, unsigned char byte) noexcept {
    return (hash ^ byte) * 0x9E3779B97F4A7C15u;
}

constexpr std::uint64_t spread(std::uint64_t hash) noexcept { return hash ^ hash >> 29; }

std::uint16_t normal(std::uint32_t cp) noexcept { return kNormal[kNormalBlock[cp >> 7] * 128u + (cp & 127u)]; }

}  // namespace

// The word being read: normalized bytes and their hash.
struct WordPiece::Word {
    // One mapped character may take it past the limit; after that it takes no more.
    std::array<unsigned char, 4 * (kMaxCharacters + 1) + kMappedBytes> bytes;
    std::size_t n_bytes = 0, n_characters = 0;
    std::uint64_t hash = kStartSeed;

    void append_ascii(unsigned char byte) noexcept {
        if (n_characters > kMaxCharacters) return;
        ++n_characters;
        bytes[n_bytes++] = byte;
        hash = add_byte(hash, byte);
    }
    void append(const unsigned char* text, std::size_t length, std::size_t characters) noexcept {
        if (n_characters > kMaxCharacters) return;
        n_characters += characters;
        for (std::size_t i = 0; i < length; ++i) {
            bytes[n_bytes++] = text[i];
            hash = add_byte(hash, text[i]);
        }
    }
    std::string_view text(std::size_t begin, std::size_t length) const noexcept {
        return {reinterpret_cast<const char*>(bytes.data()) + begin, length};
    }
    void clear() noexcept {
        n_bytes = n_characters = 0;
        hash = kStartSeed;
    }
};

WordPiece::WordPiece(std::span<const std::string_view> tokens) {
    slots_.assign(std::bit_ceil(std::max<std::size_t>(16, tokens.size() * 2)), Slot{0, -1});
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool continues = tokens[i].size() > 2 && tokens[i].starts_with("##");
        const std::string_view text = tokens[i].substr(continues ? 2 : 0);
        std::uint64_t hash = continues ? kContinueSeed : kStartSeed;
        for (const char c : text) hash = add_byte(hash, static_cast<unsigned char>(c));
        const auto id = static_cast<std::int32_t>(i);
        if (find(hash, text, continues) >= 0)
            throw std::invalid_argument("token " + std::to_string(i) + " is in the vocabulary twice");
        entries_.push_back(
            {static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size()), continues});
        text_ += text;
        longest_ = std::max(longest_, text.size());
        std::size_t slot = spread(hash) & (slots_.size() - 1);
        while (slots_[slot].id >= 0) slot = (slot + 1) & (slots_.size() - 1);
        slots_[slot] = {static_cast<std::uint32_t>(hash >> 32), id};
        if (text == "[UNK]" && !continues) unknown_ = id;
        for (const std::string_view special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
            if (text == special && !continues) special_.emplace_back(special, id);
        }
    }
    if (unknown_ < 0) throw std::invalid_argument("the vocabulary has no [UNK]");
}

std::int32_t WordPiece::find(std::uint64_t hash, std::string_view text, bool continues) const noexcept {
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t slot = spread(hash) & (slots_.size() - 1); slots_[slot].id >= 0;
         slot = (slot + 1) & (slots_.size() - 1)) {
        if (slots_[slot].tag != tag) continue;
        const Entry& entry = entries_[static_cast<std::size_t>(slots_[slot].id)];
        if (entry.length == text.size() && entry.continues == continues &&
            std::memcmp(text_.data() + entry.begin, text.data(), text.size()) == 0)
            return slots_[slot].id;
    }
    return -1;
}

void WordPiece::add_word(Word& word, std::vector<std::int32_t>& ids) const {
    if (word.n_bytes == 0) return;
    const std::size_t n_bytes = word.n_bytes, before = ids.size();
    if (word.n_characters > kMaxCharacters) {
        ids.push_back(unknown_);
    } else if (const std::int32_t whole = find(word.hash, word.text(0, n_bytes), false); whole >= 0) {
        ids.push_back(whole);
    } else {
        std::array<std::uint64_t, sizeof(Word::bytes)> hashes;
        std::size_t begin = 0;
        while (begin < n_bytes) {
            const std::size_t most = std::min(longest_, n_bytes - begin);
            std::uint64_t hash = begin ? kContinueSeed : kStartSeed;
            for (std::size_t i = 0; i < most; ++i) hashes[i] = hash = add_byte(hash, word.bytes[begin + i]);
            std::size_t length = most;
            std::int32_t id = -1;
            for (; length > 0; --length) {
                id = find(hashes[length - 1], word.text(begin, length), begin > 0);
                if (id >= 0) break;
            }
            if (id < 0) {
                ids.resize(before);
                ids.push_back(unknown_);
                break;
            }
            ids.push_back(id);
            begin += length;
        }
    }
    word.clear();
}

// Length of the special token that `text` starts with, 0 for none.
std::size_t WordPiece::add_special(std::string_view text, Word& word, std::vector<std::int32_t>& ids) const {
    for (const auto& [special, id] : special_) {
        if (!text.starts_with(special)) continue;
        add_word(word, ids);
        ids.push_back(id);
        return special.size();
    }
    return 0;
}

bool WordPiece::encode(std::string_view text, std::vector<std::int32_t>& ids, Stop& stop) const {
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = at + text.size();
    Word word;
    const auto alone = [&](const unsigned char* bytes, std::size_t length, std::size_t characters) {
        add_word(word, ids);
        word.append(bytes, length, characters);
        add_word(word, ids);
    };
    const auto* pause = at;
    while (at < end) {
        if (at >= pause) {  // about a millisecond of work
            if (stop.requested()) return false;
            pause = at + std::min<std::ptrdiff_t>(end - at, 1 << 16);
        }
        const unsigned char byte = *at;
        if (byte < 0x80) {
            const unsigned char lowered = byte | 0x20;
            if ((lowered >= 'a' && lowered <= 'z') || (byte >= '0' && byte <= '9')) {
                word.append_ascii(lowered);  // digits have that bit already
                ++at;
                continue;
            }
            if (byte == ' ') {
                add_word(word, ids);
                ++at;
                continue;
            }
        }
        if (byte == '[') {
            if (const std::size_t length =
                    add_special({reinterpret_cast<const char*>(at), static_cast<std::size_t>(end - at)}, word, ids)) {
                at += length;
                continue;
            }
        }
        const CodePoint cp = decode_utf8(at, end);
        const std::uint16_t kind = normal(cp.value);
        // A malformed byte is U+FFFD, which is dropped: from here on the character's own bytes are good.
        switch (kind) {
            case kWord:
                word.append(at, cp.length, 1);
                break;
            case kDrop:
                break;
            case kSpace:
                add_word(word, ids);
                break;
            case kAlone:
                alone(at, cp.length, 1);
                break;
            case kHangul: {
                const std::uint32_t syllable = cp.value - 0xAC00;
                const std::uint32_t jamo[3] = {0x1100 + syllable / 588, 0x1161 + syllable % 588 / 28,
                                               0x11A7 + syllable % 28};
                unsigned char bytes[12];
                std::size_t length = 0;
                const std::size_t count = syllable % 28 ? 3 : 2;
                for (std::size_t i = 0; i < count; ++i) length += encode_utf8(jamo[i], bytes + length);
                word.append(bytes, length, count);
                break;
            }
            default: {
                const std::uint8_t* row = kMapped + (kind - kMappedFrom) * kMappedBytes;
                if (row[0])
                    alone(row + 3, row[2], row[1]);
                else
                    word.append(row + 3, row[2], row[1]);
            }
        }
        at += cp.length;
    }
    add_word(word, ids);
    return true;
}

}  // namespace hsca
