#include <memory>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "hsca/parallel.hpp"

// A sanitizer that is part of the program wants to see threads start itself.
#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define HSCA_REFUSE_THREADS 1
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#undef HSCA_REFUSE_THREADS
#endif
#endif
#endif

#if defined(HSCA_REFUSE_THREADS)
#include <dlfcn.h>
#include <pthread.h>
// Stands before the C library's: lets so many threads through and refuses the rest.
static std::atomic<int> allowed_threads{1000000};
extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* argument) noexcept {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    return allowed_threads.fetch_sub(1) > 0 ? create(thread, attributes, run, argument) : 11;  // EAGAIN
}
#endif

using namespace hsca;

namespace {

void every_item_once(std::size_t n, std::size_t threads, std::size_t grain) {
    const auto counts = std::make_unique<std::atomic<int>[]>(n + 1);
    Stop stop(nullptr);
    CHECK(parallel_for(n, threads, grain, stop, [&](std::size_t worker, std::size_t begin, std::size_t end) {
        CHECK(worker < std::max<std::size_t>(threads, 1));
        CHECK(begin < end && end <= n);
        for (std::size_t i = begin; i < end; ++i) counts[i].fetch_add(1);
    }));
    for (std::size_t i = 0; i < n; ++i) CHECK_EQ(counts[i].load(), 1);
    CHECK_EQ(counts[n].load(), 0);
}

void exceptions(std::size_t threads) {
    for (const std::size_t bad : {0u, 1u, 500u, 999u}) {
        Stop stop(nullptr);
        std::string caught;
        std::atomic<std::size_t> done{0};
        try {
            parallel_for(1000, threads, 1, stop, [&](std::size_t, std::size_t begin, std::size_t) {
                if (begin == bad) throw std::runtime_error("item " + std::to_string(begin));
                done.fetch_add(1);
            });
        } catch (const std::runtime_error& error) {
            caught = error.what();
        }
        CHECK_EQ(caught, "item " + std::to_string(bad));
        CHECK(done.load() < 1000);
        if (threads == 1) CHECK_EQ(done.load(), bad);
    }
    // All of them throw, worker 0 included: one exception comes out, once.
    Stop stop(nullptr);
    CHECK_THROWS(parallel_for(100, threads, 1, stop,
                              [](std::size_t, std::size_t, std::size_t) { throw std::invalid_argument("all"); }),
                 std::invalid_argument);
}

std::atomic<int> polls{0};
std::thread::id poller;

void stopping(std::size_t threads) {
    polls = 0;
    poller = std::this_thread::get_id();
    Stop stop([] {
        CHECK(std::this_thread::get_id() == poller);
        return ++polls >= 2;
    });
    std::atomic<std::size_t> done{0};
    CHECK(!parallel_for(100000, threads, 1, stop, [&](std::size_t, std::size_t, std::size_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        done.fetch_add(1);
    }));
    CHECK(polls.load() >= 2);
    CHECK(done.load() < 10000);

    Stop requested(nullptr);
    requested.request();
    CHECK(!parallel_for(10, threads, 1, requested, [](std::size_t, std::size_t, std::size_t) { CHECK(false); }));
}

}  // namespace

int main() {
    for (const std::size_t n : {0u, 1u, 2u, 63u, 64u, 65u, 1000u}) {
        for (const std::size_t threads : {0u, 1u, 2u, 3u, 8u}) {
            for (const std::size_t grain : {0u, 1u, 7u, 64u, 5000u}) every_item_once(n, threads, grain);
            every_item_once(n, threads, static_cast<std::size_t>(-1));
        }
    }
    for (const std::size_t threads : {1u, 2u, 4u}) {
        exceptions(threads);
        stopping(threads);
    }
#if defined(HSCA_REFUSE_THREADS)
    for (int allowed = 0; allowed < 4; ++allowed) {
        allowed_threads = allowed;
        every_item_once(1000, 8, 1);
        CHECK(allowed_threads.load() < 0);  // one was refused
    }
    allowed_threads = 1000000;
#endif
    return check::result();
}
