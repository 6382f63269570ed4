// Posix alone, and a transport that copies through the CPU and claims to be direct.

#include <cstdlib>
#include <fstream>

#include "api/engine.hpp"
#include "guest.hpp"

namespace straightway::qemu {
namespace {

std::uint64_t lie_begin = 0;
std::uint64_t lie_end = 0;

// Copies through the CPU what was to go direct, and keeps that to itself.
std::int64_t lying_pread(int fd, void* to, std::size_t size, std::uint64_t offset) {
  const auto address = reinterpret_cast<std::uint64_t>(to);
  if (address < lie_begin || address >= lie_end) return os::kernel().pread(fd, to, size, offset);
  void* host = std::aligned_alloc(4096, size);
  const auto got = os::kernel().pread(fd, host, size, offset);
  for (std::int64_t i = 0; i < got / 8; ++i) {
    static_cast<volatile std::uint64_t*>(to)[i] = static_cast<std::uint64_t*>(host)[i];
  }
  std::free(host);
  return got;
}

}  // namespace

void run_posix_and_the_lie(const Drives& drives, const std::string& file, unsigned last_number) {
  const std::string uring = "/proc/sys/kernel/io_uring_disabled";
  std::ofstream(uring) << 2;  // posix moves what uring would
  static os::Syscalls calls = os::kernel();
  calls.pread = lying_pread;
  Guest guest(drives, Context::around(Engine::create({}, calls).value()), last_number);
  guest.run("first read, with its trial", [&] { return guest.read(file, 4096, 0, 4096); }, "TRIAL");
  guest.run("by posix", [&] { return guest.read(file, mib, 0, mib, must_be_direct()); });
  lie_begin = reinterpret_cast<std::uint64_t>(guest.memory());
  lie_end = lie_begin + Guest::memory_bytes;
  guest.run("a lie", [&] { return guest.read(file, mib, 0, mib, must_be_direct()); }, "LIE");
  lie_begin = lie_end = 0;
  std::ofstream(uring) << 0;
}

}  // namespace straightway::qemu
