// PID 1 of the virtual machine: moves bytes between its drives and the memory of a PCI device with
// Straightway, and prints for each case what the receipt says. Before and after each case it reads
// one block of the raw drive at an address that names the case: run.py finds those reads in QEMU's
// trace, and compares what lies between them with the receipt.

#include <dirent.h>
#include <fcntl.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/engine.hpp"
#include "straightway/straightway.hpp"

namespace straightway {
namespace {

constexpr std::size_t mib = 1 << 20;
constexpr std::uint64_t first_marker = 0x7000;  // in blocks of 512 bytes

int failures = 0;

void check(bool good, const std::string& what) {
  if (good) return;
  ++failures;
  std::printf("FAIL %s\n", what.c_str());
}

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

struct Drive {
  std::string node;  // "/dev/nvme1n1"
  std::string pci;
};

// By serial number: the order in which the kernel finds them is not fixed.
std::map<std::string, Drive> find_drives() {
  std::map<std::string, Drive> drives;
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

// The device's memory by plain loads of the CPU, a word at a time.
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

class Guest {
 public:
  // Its cases count on from last_number.
  Guest(std::map<std::string, Drive> drives, std::shared_ptr<Context> context,
        unsigned last_number = 0)
      : drives_(std::move(drives)), context_(std::move(context)), number_(last_number) {
    peer_ = PeerMemory::allocate(drives_["cmb"].pci, 8 * mib, context_).value();
    memory_ = static_cast<char*>(peer_.memory().address);
    marks_ = ::open(raw().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    mark_memory_ = std::aligned_alloc(4096, 4096);
  }

  // One case between two markers; it returns the bytes that its receipts call direct.
  void run(const std::string& name, const std::function<std::uint64_t()>& body,
           const char* kind = "CASE") {
    ++number_;
    mark(number_);
    const auto direct = body();
    mark(0);
    std::printf("%s %u %llu %s\n", kind, number_, static_cast<unsigned long long>(direct),
                name.c_str());
  }
  File open(const std::string& path, const char* mode = "r") const {
    return File::open(path, mode, {}, context_).value();
  }
  // Reads into the device's memory, checks the bytes; expected: how many must go direct.
  std::uint64_t read(const std::string& path, std::size_t size, std::uint64_t offset,
                     std::uint64_t expected, CallOptions options = {}) const {
    options.offset = offset;
    fill(memory_ + offset % 4096 / 8 * 8, size, 0xDEADDEADDEADDEAD);
    const auto receipt = open(path).read_into({memory_ + offset % 4096, size}, options);
    check(receipt.ok(), receipt ? "" : receipt.error().message());
    if (!receipt) return 0;
    if (direct_bytes(*receipt) != expected) {
      check(false, "another way than expected:\n" + receipt->to_text());
    }
    check(look(memory_ + offset % 4096, receipt->moved_bytes) == plain_read(path, size, offset),
          path + ": other bytes than those of the file");
    return direct_bytes(*receipt);
  }
  std::string raw() const { return drives_.at("raw").node; }
  const Drive& drive(const std::string& serial) const { return drives_.at(serial); }
  char* memory() const { return memory_; }

 private:
  void mark(unsigned number) const {
    const auto at = static_cast<off_t>((first_marker + number) * 512);
    check(::pread(marks_, mark_memory_, 512, at) == 512, "a marker could not be read");
  }
  std::map<std::string, Drive> drives_;
  std::shared_ptr<Context> context_;
  PeerMemory peer_;
  char* memory_ = nullptr;
  int marks_ = -1;
  void* mark_memory_ = nullptr;
  unsigned number_ = 0;
};

CallOptions must_be_direct() {
  CallOptions options;
  options.policy = Policy::direct;
  return options;
}

void run_reads(Guest& guest, const std::string& file) {
  guest.run("first read, with its trial", [&] { return guest.read(file, 4096, 0, 4096); }, "TRIAL");
  for (const std::size_t size : {std::size_t{4096}, mib, 3 * mib}) {
    guest.run("ext4 " + std::to_string(size),
              [&] { return guest.read(file, size, 8192, size, must_be_direct()); });
  }
  guest.run("ext4, unaligned at both ends", [&] { return guest.read(file, 100000, 100, 94208); });
  guest.run("ext4, across the end of the file",
            [&] { return guest.read(file, 65536, 4 * mib - 8192, 8192); });
  guest.run("16 jobs in flight", [&] {
    std::uint64_t direct = 0;
    const auto open = guest.open(file);
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < 16; ++i) {
      CallOptions options = must_be_direct();
      options.offset = i * 65536;
      jobs.push_back(open.submit_read({guest.memory() + i * 65536, 65536}, options).value());
    }
    for (const auto& job : jobs) direct += direct_bytes(job.result().value());
    check(look(guest.memory(), mib) == plain_read(file, mib, 0), "jobs brought other bytes");
    return direct;
  });
  guest.run("many ranges", [&] {
    std::vector<RangeRequest> ranges;
    for (std::size_t i = 0; i < 8; ++i) {
      ranges.push_back({(7 - i) * 131072, 4096, {guest.memory() + i * 4096, 4096}});
    }
    return direct_bytes(guest.open(file).read_ranges(ranges, must_be_direct()).value());
  });
}

// The CPU fills them, so no byte of the read is called direct.
void run_holes(Guest& guest) {
  const std::string file = "/mnt/sparse.bin";
  std::ofstream(file) << std::string(65536, 'x');
  check(::truncate(file.c_str(), mib) == 0, "no hole was made");
  ::sync();
  guest.run("ext4, a hole", [&] { return guest.read(file, mib, 0, 0); });
  guest.run("ext4, before the hole", [&] { return guest.read(file, 65536, 0, 65536); });
}

void run_raw(Guest& guest) {
  guest.run(
      "first read, with its trial", [&] { return guest.read(guest.raw(), 4096, 0, 4096); },
      "TRIAL");
  guest.run("raw drive", [&] { return guest.read(guest.raw(), mib, mib, mib); });
  const auto scratch = guest.drive("scr").node;
  const auto write = [&] {
    return direct_bytes(
        guest.open(scratch, "r+").write_from({guest.memory(), 65536}, must_be_direct()).value());
  };
  fill(guest.memory(), 65536, 0x0123456789ABCDEF);
  guest.run("first write, with its trial", write, "TRIAL");
  fill(guest.memory(), 65536, 0x1122334455667788);
  guest.run("write to a raw drive", write);
  check(look(guest.memory(), 65536) == plain_read(scratch, 65536, 0), "other bytes were written");
}

void run_refusals(Guest& guest) {
  const std::string file = "/tmp/file";
  std::ofstream(file) << std::string(65536, 'x');
  guest.run("tmpfs copies", [&] { return guest.read(file, 65536, 0, 0); });
  guest.run("tmpfs is refused", [&]() -> std::uint64_t {
    const auto refused = guest.open(file).read_into({guest.memory(), 65536}, must_be_direct());
    check(!refused && refused.error().kind == ErrorKind::route_refused, "tmpfs passed for direct");
    return 0;
  });
  guest.run("explain moves nothing", [&]() -> std::uint64_t {
    const auto plan = guest.open(guest.raw()).explain(Direction::read, {guest.memory(), mib});
    check(plan && plan->runs[0].route == Route::p2pdma, "explain plans another way");
    return 0;
  });
}

void run_program(const Guest& guest, const std::string& file) {
  const std::string memory = "peer:" + guest.drive("cmb").pci;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/straightway", "straightway", "explain", file.c_str(), "--to", memory.c_str(),
            "--policy", "direct", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "straightway explain refused");
}

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

void run_posix_and_the_lie(const std::map<std::string, Drive>& drives, const std::string& file,
                           unsigned last_number) {
  std::ofstream("/proc/sys/kernel/io_uring_disabled") << 2;  // posix moves what uring would
  static os::Syscalls calls = os::kernel();
  calls.pread = lying_pread;
  Guest guest(drives, Context::around(Engine::create({}, calls).value()), last_number);
  guest.run("first read, with its trial", [&] { return guest.read(file, 4096, 0, 4096); }, "TRIAL");
  guest.run("by posix", [&] { return guest.read(file, mib, 0, mib, must_be_direct()); });
  lie_begin = reinterpret_cast<std::uint64_t>(guest.memory());
  lie_end = lie_begin + 8 * mib;
  guest.run("a lie", [&] { return guest.read(file, mib, 0, mib, must_be_direct()); }, "LIE");
}

void run_all() {
  auto drives = find_drives();
  for (int i = 0; i < 500 && drives.size() < 4; ++i) {
    ::usleep(20000);
    drives = find_drives();
  }
  if (drives.size() < 4) return check(false, "not all drives came up");
  std::string range;
  std::ifstream resource("/sys/bus/pci/devices/" + drives["cmb"].pci + "/resource");
  for (int bar = 0; bar <= 2; ++bar) std::getline(resource, range);
  std::printf("MEMORY %s\n", range.c_str());
  ::mkdir("/mnt", 0755);
  const auto disk = drives["ext"].node;
  check(::mount(disk.c_str(), "/mnt", "ext4", 0, "") == 0, "ext4 was not mounted");
  const std::string file = "/mnt/data.bin";
  {
    Guest guest(drives, Context::create().value());
    run_reads(guest, file);
    run_holes(guest);
    run_raw(guest);
    run_refusals(guest);
    run_program(guest, file);
  }
  run_posix_and_the_lie(drives, file, 100);
  ::umount("/mnt");
}

void mount_all() {
  for (const char* folder : {"/proc", "/sys", "/dev", "/tmp", "/run"}) ::mkdir(folder, 0755);
  ::mount("proc", "/proc", "proc", 0, "");
  ::mount("sysfs", "/sys", "sysfs", 0, "");
  ::mount("devtmpfs", "/dev", "devtmpfs", 0, "");
  ::mount("tmpfs", "/tmp", "tmpfs", 0, "");
  const int console = ::open("/dev/console", O_RDWR);
  for (const int fd : {0, 1, 2}) ::dup2(console, fd);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
}

}  // namespace
}  // namespace straightway

int main() {
  using namespace straightway;
  mount_all();
  utsname name{};
  ::uname(&name);
  std::printf("\nKERNEL %s\n", name.release);
  try {
    run_all();
  } catch (const std::exception& error) {
    check(false, error.what());
  }
  std::printf("DONE %d failures\n", failures);
  std::fflush(stdout);
  ::sync();
  ::usleep(100000);
  // QEMU's isa-debug-exit: its status is 1 for 0 and 3 for 1.
  if (::iopl(3) == 0) outb(failures == 0 ? 0 : 1, 0xf4);
  ::reboot(RB_POWER_OFF);
  for (;;) ::pause();
}
