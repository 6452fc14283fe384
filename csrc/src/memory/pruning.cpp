#include "hsca/memory/pruning.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

namespace hsca {

namespace {

void check_range(std::span<const std::int64_t> numbers, std::int64_t least, std::size_t n, const char* name) {
    for (const std::int64_t number : numbers) {
        if (number < least || number >= static_cast<std::int64_t>(n)) {
            throw std::invalid_argument(std::string("plan_prune: ") + name + " holds " + std::to_string(number) +
                                        " of " + std::to_string(n));
        }
    }
}

struct Lowest {
    std::int32_t peak;
    std::size_t chunk;
    bool operator<(const Lowest& other) const {  // std::priority_queue hands out the greatest
        return peak != other.peak ? peak > other.peak : chunk > other.chunk;
    }
};

// The state of a prune that is under way.
class Pruning {
  public:
    Pruning(const PruneCandidates& candidates, const PruneRule& rule)
        : given_(candidates),
          rule_(rule),
          live_(candidates.chunks.live.begin(), candidates.chunks.live.end()),
          offered_(live_.size()),
          n_live_(candidates.first_chunk.size()) {
        for (std::size_t c = 0; c < live_.size(); ++c) {
            if (!live_[c]) continue;
            ++n_live_[message_of(c)];
            n_tokens_ += tokens_of(c);
        }
        for (std::size_t c = 0; c < live_.size(); ++c) {
            if (!rule_.anchors || !is_anchor(c) || is_released(message_of(c))) offer(c);
        }
    }

    std::vector<std::int64_t> run(std::size_t budget) {
        while (n_tokens_ > budget && n_offered_ > rule_.keep) {
            const std::size_t chunk = queue_.top().chunk;
            queue_.pop();
            if (!live_[chunk]) continue;  // went with its partner
            remove(chunk);
            if (rule_.anchors && is_anchor(chunk) && has_live_anchor(partner_of(chunk))) {
                remove(anchor_of(partner_of(chunk)));
            }
        }
        return std::move(removed_);
    }

  private:
    std::size_t message_of(std::size_t chunk) const { return static_cast<std::size_t>(given_.message_of[chunk]); }
    std::int64_t partner_of(std::size_t chunk) const { return given_.partner[message_of(chunk)]; }
    std::size_t anchor_of(std::int64_t message) const {
        return static_cast<std::size_t>(given_.first_chunk[static_cast<std::size_t>(message)]);
    }
    bool is_anchor(std::size_t chunk) const { return anchor_of(given_.message_of[chunk]) == chunk; }
    bool has_live_anchor(std::int64_t message) const { return message >= 0 && live_[anchor_of(message)]; }
    std::size_t tokens_of(std::size_t chunk) const {
        return static_cast<std::size_t>(given_.chunks.offsets[chunk + 1] - given_.chunks.offsets[chunk]);
    }

    bool is_released(std::size_t message) const {
        if (n_live_[message] != 1) return false;
        const std::int64_t partner = given_.partner[message];
        if (!has_live_anchor(partner)) return true;
        return n_live_[static_cast<std::size_t>(partner)] == 1 && !given_.exempt[anchor_of(partner)];
    }

    void offer(std::size_t chunk) {
        if (!live_[chunk] || given_.exempt[chunk] || offered_[chunk]) return;
        offered_[chunk] = 1;
        ++n_offered_;
        queue_.push({given_.peaks[chunk], chunk});
    }

    void remove(std::size_t chunk) {
        live_[chunk] = 0;
        n_tokens_ -= tokens_of(chunk);
        n_offered_ -= offered_[chunk];
        removed_.push_back(static_cast<std::int64_t>(chunk));
        const std::size_t message = message_of(chunk);
        --n_live_[message];
        if (!rule_.anchors || n_live_[message] != 1) return;
        const auto own = static_cast<std::int64_t>(message);
        for (const std::int64_t each : {own, given_.partner[message]}) {
            if (has_live_anchor(each) && is_released(static_cast<std::size_t>(each))) offer(anchor_of(each));
        }
    }

    const PruneCandidates& given_;
    const PruneRule& rule_;
    std::vector<std::uint8_t> live_;
    std::vector<std::uint8_t> offered_;
    std::vector<std::size_t> n_live_;  // chunks of each message
    std::priority_queue<Lowest> queue_;
    std::size_t n_tokens_ = 0;
    std::size_t n_offered_ = 0;  // live ones in the queue
    std::vector<std::int64_t> removed_;
};

}  // namespace

std::vector<std::int64_t> plan_prune(const PruneCandidates& candidates, std::size_t budget, const PruneRule& rule) {
    const std::size_t n_chunks = candidates.chunks.live.size(), n_messages = candidates.first_chunk.size();
    const auto offsets = candidates.chunks.offsets;
    if (offsets.empty() || offsets.back() < 0) throw std::invalid_argument("plan_prune: offsets are missing");
    check_chunks(candidates.chunks, static_cast<std::size_t>(offsets.back()));
    for (const std::size_t size : {candidates.exempt.size(), candidates.peaks.size(), candidates.message_of.size()}) {
        if (size != n_chunks) {
            throw std::invalid_argument("plan_prune: a column of " + std::to_string(size) + " for " +
                                        std::to_string(n_chunks) + " chunks");
        }
    }
    if (candidates.partner.size() != n_messages) throw std::invalid_argument("plan_prune: a partner for each message");
    check_range(candidates.message_of, 0, n_messages, "message_of");
    check_range(candidates.first_chunk, 0, n_chunks, "first_chunk");
    check_range(candidates.partner, -1, n_messages, "partner");
    return Pruning(candidates, rule).run(budget);
}

}  // namespace hsca
