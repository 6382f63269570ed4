// Runs a fuzz target without libFuzzer: every file of its corpus, then as many inputs made from
// them by chance. The same numbers give the same inputs; a failing one is named, so that it can be
// run again alone and kept in the corpus.
//
//   fuzz_X CORPUS [RUNS [SEED [FIRST]]]

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t size_limit = 4096;
std::array<char, 256> running{};  // what runs now, for the signal handler

void name_it(int signal) {
  static_cast<void>(!::write(STDERR_FILENO, running.data(), std::strlen(running.data())));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

std::vector<Bytes> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// A piece of another input, a changed byte, a piece left out, or new bytes.
void change(Bytes& bytes, const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const auto at = static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
  switch (below(4)) {
    case 0:
      if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<std::uint8_t>(random());
      break;
    case 1: {
      const Bytes& other = corpus[below(corpus.size())];
      const std::size_t begin = below(other.size());
      const std::size_t size = std::min<std::size_t>(below(64), other.size() - begin);
      const auto from = other.begin() + static_cast<std::ptrdiff_t>(begin);
      bytes.insert(bytes.begin() + at, from, from + static_cast<std::ptrdiff_t>(size));
      break;
    }
    case 2: {
      const auto left = static_cast<std::size_t>(bytes.end() - (bytes.begin() + at));
      const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(below(16), left));
      bytes.erase(bytes.begin() + at, bytes.begin() + at + size);
      break;
    }
    default:
      for (std::size_t i = 1 + below(12); i > 0; --i) {
        bytes.insert(bytes.begin() + at, static_cast<std::uint8_t>(random()));
      }
  }
  if (bytes.size() > size_limit) bytes.resize(size_limit);
}

std::uint64_t number_of(int count, char** words, int i, std::uint64_t otherwise) {
  std::uint64_t value = otherwise;
  if (i < count) std::from_chars(words[i], words[i] + std::strlen(words[i]), value);
  return value;
}

void announce(const char* what, std::uint64_t seed, std::uint64_t run) {
  std::snprintf(running.data(), running.size(), "fuzz: failed in %s %llu of seed %llu\n", what,
                static_cast<unsigned long long>(run), static_cast<unsigned long long>(seed));
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  const std::uint64_t runs = number_of(count, words, 2, 1000);
  const std::uint64_t seed = number_of(count, words, 3, 1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) {
    ::signal(signal, name_it);
  }
  auto corpus = read_corpus(words[1]);
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    announce("file", 0, i);
    LLVMFuzzerTestOneInput(corpus[i].data(), corpus[i].size());
  }
  corpus.emplace_back();
  for (std::uint64_t run = number_of(count, words, 4, 0); run < runs; ++run) {
    announce("run", seed, run);
    std::mt19937_64 random(seed * 1'000'003 + run);
    Bytes bytes = corpus[random() % corpus.size()];
    for (std::uint64_t i = 1 + random() % 8; i > 0; --i) change(bytes, corpus, random);
    ::alarm(60);  // nothing here takes long: it hangs
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  ::alarm(0);
  std::printf("%zu files and %llu inputs\n", corpus.size() - 1,
              static_cast<unsigned long long>(runs));
  return 0;
}
