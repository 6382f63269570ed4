#pragma once
// One run of the bench: what all its cases share.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench_case.hpp"
#include "bench_raw.hpp"
#include "commands.hpp"
#include "fingerprint.hpp"
#include "sample_file.hpp"
#include "straightway/file.hpp"
#include "target.hpp"

namespace straightway::tools {

// GB/s; 0: not measured.
struct Ceilings {
  double link = 0;
  double copiers = 0;
  std::map<std::string, double> disk;  // by raw way
  std::map<std::string, double> write;
};

struct BenchRun {
  const BenchOptions& options;
  Terminal& terminal;
  SampleFile sample;
  File file;
  std::unique_ptr<Target> target;
  std::unique_ptr<Area> area;  // pinned for a GPU; scratch for all
  Fingerprint fingerprint;
  std::string to;                // the target in the words of --to
  std::uint64_t size_bytes = 0;  // of the hot cases
  std::uint64_t cold_bytes = 0;  // of those that read the disk
  unsigned rounds = 0;
  unsigned threads = 0;
  Ceilings ceilings;
  std::vector<BenchCase> cases;

  bool on_device() const { return target->space() == SpaceKind::cuda; }
  bool wants(const std::string& name) const;
  Memory memory(std::uint64_t offset, std::size_t size) const;
  // Reads the hot cases' bytes, all of them.
  Result<Receipt> read_all() const;
  // Whether the first size bytes of the file are in the target.
  Result<void> verify(std::uint64_t size) const;
  // What hot bytes are held against.
  Ceiling hot_ceiling() const;
  // The fastest raw way whose name begins so.
  Ceiling disk_ceiling(const std::string& prefix = "") const;
};

// Each adds its cases, and what it measured of the ceilings. An error only when interrupted: what
// fails is written down in the case.
Result<void> measure_hot(BenchRun& run);
Result<void> measure_pinned(BenchRun& run);
Result<void> measure_cold(BenchRun& run);
Result<void> measure_mixed(BenchRun& run);
Result<void> measure_small(BenchRun& run);
Result<void> measure_ranges(BenchRun& run);
Result<void> measure_write(BenchRun& run);

// The first read of a fresh process: GB/s of the median of several.
struct FirstCall {
  std::vector<double> seconds;
  std::vector<double> first_copy_s;  // from the call to its first bytes
  std::optional<Error> failure;
};
FirstCall measure_first_call(const BenchRun& run);
// What that process does, and its exit code.
int run_first_call(const BenchOptions& options, Terminal& terminal);

Json machine_json(const BenchRun& run);
void print_header(const BenchRun& run);
void print_ceilings(const BenchRun& run);
void print_cases(const BenchRun& run);
void print_limits(const BenchRun& run);

}  // namespace straightway::tools
