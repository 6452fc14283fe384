// parallel.hpp -- the only file that starts threads.
//
// parallel_for(n, threads, poll, body) calls body(worker, begin, end) over disjoint ranges that cover [0, n). Each item
// is handled by exactly one call, so results do not depend on the number of threads as long as body(i) writes item i
// only. With one thread everything runs in the caller. `poll` is called in the calling thread about every 20 ms of
// waiting or whenever a body calls Stop::requested(); when it returns true the rest is given up and parallel_for
// returns false. The first exception of a body stops the rest and is rethrown in the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hsca {

// Shared by the workers of one parallel_for. Only the calling thread may ask `poll` (it may need an interpreter's
// lock).
class Stop {
  public:
    using Poll = bool (*)();
    explicit Stop(Poll poll) : poll_(poll), caller_(std::this_thread::get_id()) {}

    // For bodies, every millisecond or so of work.
    bool requested() {
        if (poll_ && std::this_thread::get_id() == caller_) {
            const auto now = std::chrono::steady_clock::now();
            if (now - asked_ > std::chrono::milliseconds(20)) {
                asked_ = now;
                if (poll_()) stop_.store(true, std::memory_order_relaxed);
            }
        }
        return stop_.load(std::memory_order_relaxed);
    }
    void request() { stop_.store(true, std::memory_order_relaxed); }

  private:
    Poll poll_;
    std::thread::id caller_;
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    std::atomic<bool> stop_{false};
};

// How many workers parallel_for uses: the highest number it gives a body is one less.
inline std::size_t worker_count(std::size_t n, std::size_t threads, std::size_t grain) {
    const std::size_t n_blocks = n / grain + (n % grain != 0);
    return std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(1, n_blocks));
}

template <class Body>
bool parallel_for(std::size_t n, std::size_t threads, std::size_t grain, Stop& stop, Body&& body) {
    grain = std::clamp<std::size_t>(grain, 1, std::max<std::size_t>(1, n));
    threads = worker_count(n, threads, grain);
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr error;
    std::size_t running = threads - 1;

    const auto work = [&](std::size_t worker) {
        try {
            while (!stop.requested()) {
                const std::size_t begin = next.fetch_add(grain, std::memory_order_relaxed);
                if (begin >= n) break;
                body(worker, begin, std::min(n, begin + grain));
            }
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
            stop.request();
        }
    };
    std::vector<std::thread> helpers;
    helpers.reserve(threads - 1);
    // A machine that refuses more threads gets by with those it gave.
    for (std::size_t worker = 1; worker < threads; ++worker) {
        try {
            helpers.emplace_back([&, worker] {
                work(worker);
                const std::lock_guard lock(mutex);
                --running;
                finished.notify_one();
            });
        } catch (...) {  // std::system_error or std::bad_alloc; let out, it would end the process: helpers are running
            const std::lock_guard lock(mutex);
            running -= threads - worker;
            break;
        }
    }
    work(0);
    {
        std::unique_lock lock(mutex);
        while (running > 0) {
            finished.wait_for(lock, std::chrono::milliseconds(20));
            lock.unlock();
            stop.requested();
            lock.lock();
        }
    }
    for (std::thread& helper : helpers) helper.join();
    if (error) std::rethrow_exception(error);
    return !stop.requested();
}

}  // namespace hsca
