// static_model.hpp -- a text's vector as the weighted mean of its tokens' vectors, scaled to length 1.
//
// Token t has a row of int8 and a scale that holds both the row's quantisation step and the token's weight, so that the
// mean's direction is that of sum_t scale_t row_t; the divisor drops out. Each dimension is summed by itself, token
// after token, in float32: vectorising and threads change no bit. A text without tokens (or whose rows are zero) has
// the zero vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hsca/parallel.hpp"
#include "hsca/vectors/wordpiece.hpp"

namespace hsca {

struct StaticModel {
    std::span<const std::int8_t> rows;  // n_tokens x width
    std::span<const float> scales;      // n_tokens
    std::size_t width;
};

// The first `dim` numbers of each text's vector, scaled to length 1, into out[n x dim]. Throws std::invalid_argument
// when sizes do not fit. Returns false when `poll` asked to give up.
bool embed_texts(const WordPiece& tokenizer, const StaticModel& model, std::span<const std::string_view> texts,
                 std::size_t dim, std::size_t threads, Stop::Poll poll, std::span<float> out);

}  // namespace hsca
