// standalone.cpp -- a driver without libFuzzer: mutates the built-in seeds from a fixed seed until the time is over.
// Usage: <target> [seconds [seed]], or <target> file... to run files. An input that fails is left in fuzz_failure.bin.
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "fuzz.hpp"

namespace {

std::uint64_t state = 1;
std::uint64_t random_bits() {  // splitmix64
    std::uint64_t x = state += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}
std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_bits() % n); }

void mutate(std::string& input, const std::vector<std::string>& seeds) {
    static const char* const kPieces[] = {
        ".",      ". ",     "\n",     "\n\n",   " ",      "'",      "-",   "1",    "The ", "\u00E9",   "\u0301",
        "\u4E2D", "\u3002", "\u2029", "\u00A0", "\u2026", "\u2019", " :)", " :D ", "\xFF", "\xE2\x80", "\xF0"};
    const std::size_t at = below(input.size() + 1);
    switch (below(7)) {
        case 0:
            if (!input.empty())
                input[below(input.size())] = static_cast<char>(static_cast<unsigned char>(random_bits()));
            break;
        case 1:
            input.insert(at, kPieces[below(std::size(kPieces))]);
            break;
        case 2:
            input.erase(at, below(20));
            break;
        case 3: {
            const std::string& other = seeds[below(seeds.size())];
            const std::size_t from = below(other.size() + 1);
            input.insert(at, other.substr(from, below(80)));
            break;
        }
        case 4:
            input.insert(at, input.substr(below(input.size() + 1), below(200)));
            break;
        case 5:
            input.insert(at, std::string(below(70), input.empty() ? ' ' : input[below(input.size())]));
            break;
        default:
            if (!input.empty()) {
                char& byte = input[below(std::min<std::size_t>(input.size(), 8))];
                byte = static_cast<char>(static_cast<unsigned char>(byte) ^ 1u << below(8));
            }
    }
    if (input.size() > 20000) input.resize(20000);
}

std::string current;

void keep_failure(int) {
    std::ofstream("fuzz_failure.bin", std::ios::binary) << current;
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
}

void run(const std::string& input) {
    current = input;
    const std::vector<std::uint8_t> exact(input.begin(), input.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGABRT, keep_failure);
    const double seconds = argc > 1 ? std::atof(argv[1]) : 3.0;
    if (argc > 1 && seconds <= 0.0) {
        for (int i = 1; i < argc; ++i) {
            std::ifstream file(argv[i], std::ios::binary);
            run(std::string(std::istreambuf_iterator<char>(file), {}));
        }
        return 0;
    }
    if (argc > 2) state = std::strtoull(argv[2], nullptr, 10);
    const std::vector<std::string> seeds = fuzz_seeds();
    const auto start = std::chrono::steady_clock::now();
    run("");
    for (const std::string& seed : seeds) run(seed);
    std::size_t n = 0;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
        std::string input = seeds[below(seeds.size())];
        for (std::size_t round = 1 + below(30); round; --round) {
            mutate(input, seeds);
            run(input);
            ++n;
        }
    }
    std::printf("%zu inputs\n", n);
    return 0;
}
