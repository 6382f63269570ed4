// Cold and mixed files into host memory: Straightway's cache behaviours beside raw ways of doing
// the same, in turns within one run. Every run starts with the file's pages dropped and ends with
// its bytes compared; a figure whose bytes were wrong is not printed.
//
// usage: cold_bench [MIB [ROUNDS [FOLDER]]]

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "os/facts.hpp"
#include "os/syscalls.hpp"
#include "straightway/straightway.hpp"

namespace straightway {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t stretch_bytes = 64 * mib;  // of a file that is half hot

void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Huge pages where there are any: what a ring or a tensor allocator would have.
struct Buffer {
  explicit Buffer(std::size_t size) : size_bytes(size) {
    void* mapped =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) die("mmap");
    ::madvise(mapped, size, MADV_HUGEPAGE);
    data = static_cast<char*>(mapped);
    std::memset(data, 1, size);
  }
  char* data;
  std::size_t size_bytes;
};

class ColdFile {
 public:
  ColdFile(const std::string& folder, std::size_t size) : size_bytes(size) {
    path = folder + "/straightway-cold-XXXXXX";
    fd = ::mkstemp(path.data());
    if (fd < 0) die("mkstemp");
    expected.resize(size);
    std::uint64_t state = 1;
    for (std::size_t i = 0; i + 8 <= size; i += 8) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(expected.data() + i, &state, 8);
    }
    for (std::size_t at = 0; at < size; at += mib) {
      if (::pwrite(fd, expected.data() + at, mib, static_cast<off_t>(at)) != ssize_t{mib}) {
        die("pwrite");
      }
    }
    if (::fdatasync(fd) != 0) die("fdatasync");
    direct = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  }
  ~ColdFile() {
    ::close(direct);
    ::close(fd);
    ::unlink(path.c_str());
  }
  ColdFile(const ColdFile&) = delete;
  ColdFile& operator=(const ColdFile&) = delete;

  void drop() const { ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }
  void warm_every_other_stretch(Buffer& scratch) const {
    for (std::size_t at = 0; at < size_bytes; at += 2 * stretch_bytes) {
      const int own = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      ::posix_fadvise(own, 0, 0, POSIX_FADV_RANDOM);
      for (std::size_t done = 0; done < stretch_bytes; done += mib) {
        if (::pread(own, scratch.data, mib, static_cast<off_t>(at + done)) < 0) die("pread");
      }
      ::close(own);
    }
  }
  double cached() const {
    return static_cast<double>(os::read_residency(fd, 0, size_bytes).resident_bytes) /
           static_cast<double>(size_bytes);
  }

  std::string path;
  std::size_t size_bytes;
  int fd = -1;
  int direct = -1;
  std::vector<char> expected;
};

// Threads that take pieces in file order.
void in_pieces(const ColdFile& file, unsigned threads, std::size_t piece,
               const std::function<void(std::size_t at, std::size_t size)>& move) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (auto at = next.fetch_add(piece); at < file.size_bytes; at = next.fetch_add(piece)) {
        move(at, std::min(piece, file.size_bytes - at));
      }
    });
  }
}

template <class Read>
void read_all(char* into, std::size_t at, std::size_t size, const Read& read) {
  for (std::size_t done = 0; done < size;) {
    const auto got = read(into + at + done, size - done, at + done);
    if (got <= 0) die("read");
    done += static_cast<std::size_t>(got);
  }
}

void raw_direct(const ColdFile& file, Buffer& into, unsigned threads, std::size_t piece) {
  in_pieces(file, threads, piece, [&](std::size_t at, std::size_t size) {
    read_all(into.data, at, size, [&](char* to, std::size_t left, std::size_t from) {
      return ::pread(file.direct, to, left, static_cast<off_t>(from));
    });
  });
}

void raw_buffered(const ColdFile& file, Buffer& into, unsigned threads, std::size_t ahead) {
  const int own = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  std::atomic<std::size_t> advised{0};
  in_pieces(file, threads, mib, [&](std::size_t at, std::size_t size) {
    for (auto told = advised.load(); ahead > 0 && told < std::min(at + ahead, file.size_bytes);
         told = advised.load()) {
      if (advised.compare_exchange_strong(told, told + 4 * mib)) {
        ::readahead(own, static_cast<off64_t>(told), 4 * mib);
      }
    }
    read_all(into.data, at, size, [&](char* to, std::size_t left, std::size_t from) {
      return ::pread(own, to, left, static_cast<off_t>(from));
    });
  });
  ::close(own);
}

void raw_dontcache(const ColdFile& file, Buffer& into, unsigned threads) {
  in_pieces(file, threads, mib, [&](std::size_t at, std::size_t size) {
    read_all(into.data, at, size, [&](char* to, std::size_t left, std::size_t from) {
      return os::kernel().pread_dontcache(file.fd, to, left, from);
    });
  });
}

std::string last_receipt;

void ours(const ColdFile& file, Buffer& into, Cache cache) {
  auto opened = File::open(file.path, "r");
  if (!opened.ok()) die("open");
  CallOptions options;
  options.cache = cache;
  const auto receipt = opened->read_into({into.data, file.size_bytes}, options);
  if (!receipt.ok()) {
    std::printf("%s\n", receipt.error().message().c_str());
    std::exit(1);
  }
  last_receipt = receipt->disk_measured
                     ? std::to_string(receipt->disk_bytes / mib) + " MiB from the disk"
                     : "disk not measured";
}

struct Way {
  std::string name;
  std::function<void()> run;
  bool half_hot = false;
  std::vector<double> gbs;
  std::vector<double> cpu;
  double cached = 0;
  std::string note;
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(Way& way, const ColdFile& file, Buffer& into) {
  file.drop();
  if (way.half_hot) file.warm_every_other_stretch(into);
  std::memset(into.data, 1, file.size_bytes);
  last_receipt.clear();
  const double cpu_before = cpu_seconds();
  const auto begun = std::chrono::steady_clock::now();
  way.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const double gb = static_cast<double>(file.size_bytes) / 1e9;
  way.cpu.push_back((cpu_seconds() - cpu_before) / gb);
  way.gbs.push_back(gb / took.count());
  way.cached = file.cached();
  way.note = last_receipt;
  if (std::memcmp(into.data, file.expected.data(), file.size_bytes) != 0) {
    std::printf("%s: wrong bytes\n", way.name.c_str());
    std::exit(1);
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const Way& way) {
  const auto [least, most] = std::minmax_element(way.gbs.begin(), way.gbs.end());
  std::printf("| %s | %.2f | %.2f to %.2f | %.3f | %.3f | %s |\n", way.name.c_str(),
              median(way.gbs), *least, *most, median(way.cpu), way.cached, way.note.c_str());
}

int run(std::size_t size, int rounds, const std::string& folder) {
  const ColdFile file(folder, size);
  Buffer into(size);
  const auto facts = os::read_file_facts(file.fd, file.path);
  utsname name{};
  ::uname(&name);
  std::printf("%s, %s, %s (%s), %u processors, %zu MiB, %d rounds in turns\n\n", name.release,
              facts.filesystem.c_str(), facts.device.c_str(), facts.device_driver.c_str(),
              std::thread::hardware_concurrency(), size / mib, rounds);
  std::vector<Way> ways = {
      {.name = "raw O_DIRECT 8 x 1 MiB", .run = [&] { raw_direct(file, into, 8, mib); }},
      {.name = "raw O_DIRECT 2 x 8 MiB", .run = [&] { raw_direct(file, into, 2, 8 * mib); }},
      {.name = "Straightway bypass", .run = [&] { ours(file, into, Cache::bypass); }},
      {.name = "raw buffered, 8 readers", .run = [&] { raw_buffered(file, into, 8, 0); }},
      {.name = "raw readahead 64 MiB, 2 readers",
       .run = [&] { raw_buffered(file, into, 2, 64 * mib); }},
      {.name = "Straightway auto", .run = [&] { ours(file, into, Cache::automatic); }},
      {.name = "raw RWF_DONTCACHE, 8 readers", .run = [&] { raw_dontcache(file, into, 8); }},
      {.name = "Straightway drop", .run = [&] { ours(file, into, Cache::drop); }},
      {.name = "half hot: raw buffered, 8 readers",
       .run = [&] { raw_buffered(file, into, 8, 0); },
       .half_hot = true},
      {.name = "half hot: Straightway auto",
       .run = [&] { ours(file, into, Cache::automatic); },
       .half_hot = true},
  };
  for (int round = 0; round < rounds; ++round) {
    for (auto& way : ways) measure(way, file, into);
  }
  std::printf("| way | GB/s, median | spread | CPU-s/GB | cached after | |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const auto& way : ways) print(way);
  return 0;
}

}  // namespace
}  // namespace straightway

int main(int count, char** words) {
  const auto size_mib = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1024;
  const int rounds = count > 2 ? std::atoi(words[2]) : 5;
  return straightway::run(std::max<std::size_t>(size_mib / 128, 1) * 128 * straightway::mib,
                          std::max(rounds, 1), count > 3 ? words[3] : "/tmp");
}
