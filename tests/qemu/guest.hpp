#pragma once
// What the cases in the virtual machine share: its drives, a device's memory, and the frame of
// markers around each case.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "straightway/straightway.hpp"

namespace straightway::qemu {

inline constexpr std::size_t mib = 1 << 20;
inline constexpr std::uint64_t poison = 0xDEADDEADDEADDEAD;

// Prints a fault, and counts it.
void check(bool good, const std::string& what);
int failures();

struct Drive {
  std::string node;  // "/dev/nvme1n1"
  std::string pci;
};
using Drives = std::map<std::string, Drive>;  // by serial number: their order is not fixed

// Waits until so many are there.
Drives find_drives(std::size_t wanted);

// Memory of a device by plain loads and stores of the CPU, a word at a time.
std::vector<char> look(const void* memory, std::size_t size);
void fill(void* memory, std::size_t size, std::uint64_t word);
// Through the page cache, into host memory.
std::vector<char> plain_read(const std::string& path, std::size_t size, std::uint64_t offset);

std::uint64_t direct_bytes(const Receipt& receipt);
CallOptions must_be_direct(std::uint64_t offset = 0);

class Guest {
 public:
  static constexpr std::size_t memory_bytes = 8 * mib;

  // Its cases count on from last_number.
  Guest(Drives drives, std::shared_ptr<Context> context, unsigned last_number = 0);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest();

  // One case between two markers; body returns the bytes that its receipts call direct. kind says
  // what run.py demands of the witness: CASE the same; TRIAL a block more; MOST at least as much;
  // LIE nothing at all; BARE is not Straightway's.
  void run(const std::string& name, const std::function<std::uint64_t()>& body,
           const char* kind = "CASE");
  File open(const std::string& path, const char* mode = "r") const;
  // Reads into the device's memory, checks the bytes; expected: how many must go direct.
  std::uint64_t read(const std::string& path, std::size_t size, std::uint64_t offset,
                     std::uint64_t expected, CallOptions options = {}) const;
  // The first read of a storage, and one that knows the way.
  void run_two_reads(const std::string& name, const std::string& path);
  // What the kernel answers to O_DIRECT into the device's memory, without Straightway.
  std::int64_t bare_read(const std::string& path, std::size_t size);
  // auto copies, direct is refused for this reason, and the kernel itself answers so.
  void run_refused(const std::string& name, const std::string& path, Reason reason,
                   std::int64_t kernel_answer);

  const std::string& raw() const { return drive("raw").node; }
  const Drive& drive(const std::string& serial) const { return drives_.at(serial); }
  const Drives& drives() const { return drives_; }
  const std::shared_ptr<Context>& context() const { return context_; }
  char* memory() const { return memory_; }
  unsigned last_number() const { return number_; }

 private:
  void mark(unsigned number) const;
  Drives drives_;
  std::shared_ptr<Context> context_;
  PeerMemory peer_;
  char* memory_ = nullptr;
  int marks_ = -1;
  void* mark_memory_ = nullptr;
  unsigned number_ = 0;
};

// cases.cpp: on the drives as they are, and on ext4.
void run_reads(Guest& guest, const std::string& file);
void run_crowds(Guest& guest, const std::string& file);
void run_holes(Guest& guest);
void run_raw(Guest& guest);
void run_refusals(Guest& guest);
void run_program(const Guest& guest, const std::string& file);
// The device is taken away; nothing may use its memory afterwards.
void run_removal(Guest& guest, const std::string& file);

// stacks.cpp: XFS, overlay, md raid0, dm-linear and loop.
void run_stacks(Guest& guest);

// lie.cpp: posix alone, and a transport that copies through the CPU and claims to be direct.
void run_posix_and_the_lie(const Drives& drives, const std::string& file, unsigned last_number);

}  // namespace straightway::qemu
