// On the drives as they are, and on ext4.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "guest.hpp"
#include "os/descriptor.hpp"

namespace straightway::qemu {
namespace {

constexpr std::size_t crowd = 128;
constexpr std::size_t share_bytes = 256 << 10;

// Many reads of 4 MiB of the file, over and over, into the same places.
std::vector<Job> start_crowd(const Guest& guest, const File& file) {
  std::vector<Job> jobs;
  jobs.reserve(crowd);
  for (std::size_t i = 0; i < crowd; ++i) {
    const std::size_t offset = i % 16 * share_bytes;
    jobs.push_back(
        file.submit_read({guest.memory() + offset, share_bytes}, must_be_direct(offset)).value());
  }
  return jobs;
}

struct Account {
  std::uint64_t direct_bytes = 0;
  int failed = 0;
};

// What the receipts call direct, once nothing is in flight.
Account wait_for(const std::vector<Job>& jobs, ErrorKind allowed) {
  Account account;
  for (const auto& job : jobs) {
    const auto result = job.result();
    account.direct_bytes += result ? direct_bytes(*result) : 0;
    account.failed += result ? 0 : 1;
    check(result || result.error().kind == allowed, result ? "" : result.error().message());
  }
  return account;
}

std::vector<char> words(std::size_t size, std::uint64_t word) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(word >> i % 8 * 8);
  return bytes;
}

}  // namespace

void run_reads(Guest& guest, const std::string& file) {
  guest.run("first read, with its trial", [&] { return guest.read(file, 4096, 0, 4096); }, "TRIAL");
  for (const std::size_t size : {std::size_t{4096}, mib, 3 * mib}) {
    guest.run("ext4 " + std::to_string(size),
              [&] { return guest.read(file, size, 8192, size, must_be_direct()); });
  }
  guest.run("ext4, unaligned at both ends", [&] { return guest.read(file, 100000, 100, 94208); });
  guest.run("ext4, across the end of the file",
            [&] { return guest.read(file, 65536, 4 * mib - 8192, 8192); });
  guest.run("many ranges", [&] {
    std::vector<RangeRequest> ranges;
    ranges.reserve(8);
    for (std::size_t i = 0; i < 8; ++i) {
      ranges.push_back({(7 - i) * 131072, 4096, {guest.memory() + i * 4096, 4096}});
    }
    return direct_bytes(guest.open(file).read_ranges(ranges, must_be_direct()).value());
  });
}

void run_crowds(Guest& guest, const std::string& file) {
  const auto open = guest.open(file);
  guest.run("128 jobs in flight", [&] {
    const auto account = wait_for(start_crowd(guest, open), ErrorKind::io);
    check(account.failed == 0, "jobs failed");
    check(look(guest.memory(), 4 * mib) == plain_read(file, 4 * mib, 0),
          "jobs brought other bytes");
    return account.direct_bytes;
  });
  // Those that were cancelled claim nothing, whatever they had moved by then.
  guest.run(
      "128 jobs cancelled in flight",
      [&] {
        const auto jobs = start_crowd(guest, open);
        while (!jobs.front().done()) ::usleep(100);
        for (const auto& job : jobs) job.cancel();
        const auto account = wait_for(jobs, ErrorKind::cancelled);
        check(account.failed > 0, "nothing was cancelled");
        fill(guest.memory(), 4 * mib, poison);
        return account.direct_bytes;
      },
      "MOST");
  check(look(guest.memory(), 4 * mib) == words(4 * mib, poison),
        "bytes arrived after the jobs had ended");
}

// The CPU fills them, so no byte of the read is called direct.
void run_holes(Guest& guest) {
  const std::string file = "/mnt/sparse.bin";
  std::ofstream(file) << std::string(65536, 'x');
  check(::truncate(file.c_str(), mib) == 0, "no hole was made");
  ::sync();
  guest.run("ext4, a hole", [&] { return guest.read(file, mib, 0, 0); });
  guest.run("ext4, before the hole", [&] { return guest.read(file, 65536, 0, 65536); });
  const std::string reserved = "/mnt/reserved.bin";
  std::ofstream(reserved) << std::string(65536, 'x');
  const os::Descriptor fd(::open(reserved.c_str(), O_RDWR | O_CLOEXEC));
  check(::fallocate(fd.get(), 0, 65536, mib - 65536) == 0, "no blocks were reserved");
  ::sync();
  for (const char* name : {"ext4, blocks never written", "the same, their zeros cached"}) {
    guest.run(name, [&] { return guest.read(reserved, mib, 0, 0); });
  }
}

void run_raw(Guest& guest) {
  guest.run_two_reads("raw drive", guest.raw());
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
  // The kernel copies, and calls it success.
  guest.run_refused("tmpfs", file, Reason::no_block_device, 65536);
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

void run_removal(Guest& guest, const std::string& file) {
  const auto open = guest.open(file);
  guest.run("first read, with its trial", [&] { return guest.read(file, 4096, 0, 4096); }, "TRIAL");
  guest.run(
      "the device is removed under many jobs",
      [&] {
        std::thread remover([&] {
          std::ofstream("/sys/bus/pci/devices/" + guest.drive("cmb").pci + "/remove") << 1;
        });
        Account all;
        for (int i = 0; i < 100 && all.failed == 0; ++i) {
          const auto one = wait_for(start_crowd(guest, open), ErrorKind::route_refused);
          all.direct_bytes += one.direct_bytes;
          all.failed += one.failed;
        }
        remover.join();
        check(all.failed > 0, "no job noticed that the device was removed");
        return all.direct_bytes;
      },
      "MOST");
  // No load of the CPU, which would end this program: an error that says what happened.
  const auto after = open.read_into({guest.memory(), mib});
  check(!after, "bytes went into memory that is gone");
  if (!after) std::printf("  afterwards: %s\n", after.error().message().c_str());
  check(!PeerMemory::allocate(guest.drive("cmb").pci, mib, guest.context()),
        "memory of a device that is gone");
}

}  // namespace straightway::qemu
