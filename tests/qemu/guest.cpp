#include "guest.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace straightway::qemu {
namespace {

constexpr std::uint64_t first_marker = 0x7000;  // in blocks of 512 bytes

int failure_count = 0;

std::string first_word(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* open = ::opendir(folder.c_str());
  while (const dirent* entry = open ? ::readdir(open) : nullptr) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  if (open) ::closedir(open);
  return names;
}

Drives drives_now() {
  Drives drives;
  const std::string all = "/sys/class/nvme/";
  for (const auto& name : names_in(all)) {
    Drive drive{"", first_word(all + name + "/address")};
    for (const auto& entry : names_in(all + name)) {
      if (entry.starts_with(name + "n")) drive.node = "/dev/" + entry;
    }
    if (!drive.node.empty() && ::access(drive.node.c_str(), R_OK) == 0) {
      drives[first_word(all + name + "/serial")] = drive;
    }
  }
  return drives;
}

}  // namespace

void check(bool good, const std::string& what) {
  if (good) return;
  ++failure_count;
  std::printf("FAIL %s\n", what.c_str());
}

int failures() { return failure_count; }

Drives find_drives(std::size_t wanted) {
  auto drives = drives_now();
  for (int i = 0; i < 5000 && drives.size() < wanted; ++i) {
    ::usleep(20000);
    drives = drives_now();
  }
  return drives;
}

std::vector<char> look(const void* memory, std::size_t size) {
  std::vector<char> bytes(size);
  const auto* words = static_cast<const volatile std::uint64_t*>(memory);
  for (std::size_t i = 0; i < size / 8; ++i) {
    const std::uint64_t word = words[i];
    std::memcpy(bytes.data() + i * 8, &word, 8);
  }
  const auto* rest = static_cast<const volatile char*>(memory);
  for (std::size_t i = size / 8 * 8; i < size; ++i) bytes[i] = rest[i];
  return bytes;
}

void fill(void* memory, std::size_t size, std::uint64_t word) {
  auto* words = static_cast<volatile std::uint64_t*>(memory);
  for (std::size_t i = 0; i < size / 8; ++i) words[i] = word;
}

std::vector<char> plain_read(const std::string& path, std::size_t size, std::uint64_t offset) {
  std::vector<char> bytes(size);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto got = ::pread(fd, bytes.data(), size, static_cast<off_t>(offset));
  ::close(fd);
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

std::uint64_t direct_bytes(const Receipt& receipt) {
  return receipt.routes[index(Route::p2pdma)].bytes;
}

CallOptions must_be_direct(std::uint64_t offset) {
  CallOptions options;
  options.offset = offset;
  options.policy = Policy::direct;
  return options;
}

Guest::Guest(Drives drives, std::shared_ptr<Context> context, unsigned last_number)
    : drives_(std::move(drives)), context_(std::move(context)), number_(last_number) {
  peer_ = PeerMemory::allocate(drive("cmb").pci, memory_bytes, context_).value();
  memory_ = static_cast<char*>(peer_.memory().address);
  marks_ = ::open(raw().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  mark_memory_ = std::aligned_alloc(4096, 4096);
}

Guest::~Guest() {
  ::close(marks_);
  std::free(mark_memory_);
}

void Guest::run(const std::string& name, const std::function<std::uint64_t()>& body,
                const char* kind) {
  ++number_;
  mark(number_);
  const auto direct = body();
  mark(0);
  std::printf("%s %u %llu %s\n", kind, number_, static_cast<unsigned long long>(direct),
              name.c_str());
}

File Guest::open(const std::string& path, const char* mode) const {
  return File::open(path, mode, {}, context_).value();
}

std::uint64_t Guest::read(const std::string& path, std::size_t size, std::uint64_t offset,
                          std::uint64_t expected, CallOptions options) const {
  options.offset = offset;
  char* to = memory_ + offset % 4096;
  fill(memory_ + offset % 4096 / 8 * 8, size, poison);
  const auto receipt = open(path).read_into({to, size}, options);
  check(receipt.ok(), receipt ? "" : receipt.error().message());
  if (!receipt) return 0;
  if (direct_bytes(*receipt) != expected) {
    check(false, "another way than expected:\n" + receipt->to_text());
  }
  check(look(to, receipt->moved_bytes) == plain_read(path, size, offset),
        path + ": other bytes than those of the file");
  return direct_bytes(*receipt);
}

void Guest::run_two_reads(const std::string& name, const std::string& path) {
  run(name + ", first read", [&] { return read(path, 4096, 0, 4096); }, "TRIAL");
  run(name, [&] { return read(path, mib, 65536, mib, must_be_direct()); });
}

std::int64_t Guest::bare_read(const std::string& path, std::size_t size) {
  std::int64_t answer = 0;
  const auto read = [&]() -> std::uint64_t {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    const auto got = ::pread(fd, memory_, size, 0);
    answer = got < 0 ? -errno : got;
    ::close(fd);
    return 0;
  };
  run("the kernel's own answer", read, "BARE");
  return answer;
}

void Guest::run_refused(const std::string& name, const std::string& path, Reason reason,
                        std::int64_t kernel_answer) {
  run(name + ", refused", [&]() -> std::uint64_t {
    const auto refused = open(path).read_into({memory_, 65536}, must_be_direct());
    check(!refused && refused.error().kind == ErrorKind::route_refused,
          name + " passed for direct");
    const auto plan = open(path).explain(Direction::read, {memory_, 65536}).value();
    check(plan.refused[index(Route::p2pdma)] == reason,
          name + ": explained with another reason:\n" + plan.to_text());
    return read(path, 65536, 0, 0);
  });
  const auto answer = bare_read(path, 65536);
  check(answer == kernel_answer, name + ": the kernel answers " + std::to_string(answer));
}

void Guest::mark(unsigned number) const {
  const auto at = static_cast<off_t>((first_marker + number) * 512);
  check(::pread(marks_, mark_memory_, 512, at) == 512, "a marker could not be read");
}

}  // namespace straightway::qemu
