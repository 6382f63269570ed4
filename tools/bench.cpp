// straightway bench: how fast this machine reads and writes files, held against what it could do.

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>

#include "arguments.hpp"
#include "bench_run.hpp"
#include "interrupt.hpp"
#include "memory_left.hpp"
#include "plan/settings.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::uint64_t most_bytes_unasked = 4 * gib;
constexpr std::uint64_t most_cold_bytes_unasked = gib;
constexpr unsigned most_threads = 64;

constexpr std::array<const char*, 7> case_names = {"hot",   "pinned", "cold", "mixed",
                                                   "small", "ranges", "write"};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const auto end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<void> check_cases(const std::string& cases) {
  for (const std::string& word : split(cases)) {
    if (std::ranges::find(case_names, word) != case_names.end()) continue;
    return usage_error("use --cases=" + cases, "there is no case '" + word + "'",
                       "write some of hot,pinned,cold,mixed,small,ranges,write");
  }
  return {};
}

// --to, or the first GPU where there is a real one.
Result<Destination> choose_destination(const std::string& to) {
  if (!to.empty()) return parse_destination(to);
  const auto context = Context::process_default();
  if (!context) return context.error();
  const auto machine = (*context)->machine(true);
  if (!machine) return machine.error();
  if ((*machine)->cuda_devices > 0 && !(*machine)->cuda_simulated) {
    return Destination{SpaceKind::cuda, 0};
  }
  return Destination{};
}

std::string name_of(const Destination& destination) {
  return destination.space == SpaceKind::host ? "host" : fmt::format("cuda:{}", destination.device);
}

std::uint64_t free_disk_bytes(const std::string& folder) {
  struct statvfs status;
  if (::statvfs(folder.c_str(), &status) != 0) return 0;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

// 4 GiB, or a quarter of the free memory or of the free disk.
std::uint64_t made_bytes() {
  const std::uint64_t memory = available_memory_bytes().value_or(most_bytes_unasked) / 4;
  const std::uint64_t disk = free_disk_bytes(SampleFile::folder()) / 4;
  const std::uint64_t size = std::min({most_bytes_unasked, memory, disk});
  return std::max(size / mib * mib, std::uint64_t{mib});
}

Result<std::uint64_t> asked_bytes(const BenchOptions& options) {
  auto size = plan::parse_size("--size", options.size);
  if (size && *size == 0) return usage_error("use --size=" + options.size, "nothing moves");
  return size;
}

Result<SampleFile> choose_file(const BenchOptions& options, Terminal& terminal) {
  if (!options.file.empty()) return SampleFile::open(options.file);
  if (options.size.empty()) return SampleFile::make("bench", made_bytes(), terminal);
  const auto size = asked_bytes(options);
  if (!size) return size.error();
  return SampleFile::make("bench", *size, terminal);
}

Result<std::uint64_t> choose_size(const BenchOptions& options, const SampleFile& sample) {
  std::uint64_t size_bytes = std::min(sample.size_bytes(), most_bytes_unasked);
  if (!options.size.empty()) {
    auto asked = asked_bytes(options);
    if (!asked) return asked;
    size_bytes = std::min(sample.size_bytes(), *asked);
  }
  if (size_bytes > 0) return size_bytes;
  Error error = usage_error("read", "the file is empty");
  error.path = sample.path();
  return error;
}

Result<std::unique_ptr<Target>> allocate(const Destination& destination, std::uint64_t size_bytes) {
  if (destination.space == SpaceKind::cuda) return allocate_device(destination.device, size_bytes);
  if (auto fits = check_fits(size_bytes); !fits) return fits.error();
  return allocate_host(size_bytes);
}

// Pinned for a GPU, 1 GiB if there is that much to read; else scratch for the threads.
std::uint64_t area_bytes(const Destination& destination, std::uint64_t size_bytes,
                         unsigned threads) {
  const std::uint64_t least = std::max(threads, 16U) * mib;
  return destination.space == SpaceKind::cuda ? std::max(least, std::min(size_bytes, gib)) : least;
}

unsigned usable_threads() {
  const auto context = Context::process_default();
  if (!context) return 1;
  const auto machine = (*context)->machine(false);
  return machine ? std::clamp((*machine)->cpus, 1U, most_threads) : 1;
}

Result<BenchRun> prepare(const BenchOptions& options, Terminal& terminal) {
  if (auto known = check_cases(options.cases); !known) return known.error();
  const auto destination = choose_destination(options.to);
  if (!destination) return destination.error();
  auto sample = choose_file(options, terminal);
  if (!sample) return sample.error();
  const auto size = choose_size(options, *sample);
  if (!size) return size.error();
  auto file = File::open(sample->path());
  if (!file) return file.error();
  auto target = allocate(*destination, *size);
  if (!target) return target.error();
  const unsigned threads = usable_threads();
  auto area = (*target)->make_area(area_bytes(*destination, *size, threads));
  if (!area) return area.error();
  terminal.show_progress("reading the file plainly, for the verification");
  auto fingerprint = Fingerprint::read(sample->descriptor(), sample->path(), *size, threads);
  if (!fingerprint) return fingerprint.error();
  BenchRun run{.options = options,
               .terminal = terminal,
               .sample = std::move(*sample),
               .file = std::move(*file),
               .target = std::move(*target),
               .area = std::move(*area),
               .fingerprint = std::move(*fingerprint),
               .to = name_of(*destination),
               .ceilings = {},
               .cases = {}};
  run.size_bytes = *size;
  run.cold_bytes = options.size.empty() ? std::min(*size, most_cold_bytes_unasked) : *size;
  run.rounds = options.repeat;
  run.threads = threads;
  return run;
}

Result<void> measure(BenchRun& run) {
  // The ceilings come with the cases that need them.
  if (run.wants("hot") || run.wants("pinned") || run.wants("mixed") || run.wants("ranges")) {
    if (auto done = measure_hot(run); !done) return done;
  }
  if (run.wants("pinned")) {
    if (auto done = measure_pinned(run); !done) return done;
  }
  if (run.wants("small")) {
    if (auto done = measure_small(run); !done) return done;
  }
  if (run.wants("ranges")) {
    if (auto done = measure_ranges(run); !done) return done;
  }
  if (run.wants("cold")) {
    if (auto done = measure_cold(run); !done) return done;
  }
  if (run.wants("mixed")) {
    if (auto done = measure_mixed(run); !done) return done;
  }
  if (run.wants("write")) {
    if (auto done = measure_write(run); !done) return done;
  }
  return {};
}

int show(const BenchRun& run, bool json, Terminal& terminal) {
  bool right = true;
  Json cases = Json::array();
  for (const BenchCase& result : run.cases) {
    cases.push_back(to_json(result));
    if (!result.failure) continue;
    right = false;
    terminal.warn(fmt::format("{}: NOT VERIFIED: {}", result.name, result.failure->message()));
  }
  if (json) {
    terminal.print_line(dump(Json{{"machine", machine_json(run)}, {"cases", std::move(cases)}}));
  } else {
    print_ceilings(run);
    print_cases(run);
    print_limits(run);
  }
  return right ? 0 : 1;
}

}  // namespace

bool BenchRun::wants(const std::string& name) const {
  const auto words = split(options.cases);
  return std::ranges::find(words, name) != words.end();
}

Memory BenchRun::memory(std::uint64_t offset, std::size_t size) const {
  return {static_cast<char*>(target->memory().address) + offset, size};
}

Result<Receipt> BenchRun::read_all() const {
  CallOptions whole;
  whole.exact = true;
  return file.read_into(memory(0, size_bytes), whole);
}

Result<void> BenchRun::verify(std::uint64_t size) const {
  auto right = fingerprint.check(*target, size, area->data(), threads);
  if (!right && right.error().path.empty()) right.error().path = sample.path();
  return right;
}

Ceiling BenchRun::hot_ceiling() const {
  return on_device() ? Ceiling{"link", ceilings.link} : Ceiling{"copiers", ceilings.copiers};
}

Ceiling BenchRun::disk_ceiling(const std::string& prefix) const {
  Ceiling best{"disk", 0};
  for (const auto& [name, gbs] : ceilings.disk) {
    if (name.starts_with(prefix)) best.gbs = std::max(best.gbs, gbs);
  }
  return best;
}

int run_bench(const BenchOptions& options, Terminal& terminal) {
  notice_interrupts();
  if (options.first_call) return run_first_call(options, terminal);
  const auto fail = [&](const Error& error) {
    const int code = terminal.fail(error, options.json);
    return interrupted() != 0 ? interrupted_exit_code() : code;
  };
  auto run = prepare(options, terminal);
  if (!run) return fail(run.error());
  if (!options.json) print_header(*run);
  if (auto done = measure(*run); !done) return fail(done.error());
  return show(*run, options.json, terminal);
}

}  // namespace straightway::tools
