// The first read of a process: measured by processes that do nothing else.

#include <fmt/format.h>

#include <chrono>

#include "again.hpp"
#include "arguments.hpp"
#include "bench_run.hpp"
#include "interrupt.hpp"

namespace straightway::tools {
namespace {

constexpr unsigned verifying_threads = 4;

Result<void> verify(const SampleFile& sample, const Target& target, std::uint64_t size_bytes) {
  const auto area = target.make_area(verifying_threads * Fingerprint::piece_bytes);
  if (!area) return area.error();
  const auto fingerprint =
      Fingerprint::read(sample.descriptor(), sample.path(), size_bytes, verifying_threads);
  if (!fingerprint) return fingerprint.error();
  return fingerprint->check(target, size_bytes, (*area)->data(), verifying_threads);
}

// The context of the GPU is up when the clock starts; nothing of ours is.
Result<Json> first_call(const BenchOptions& options) {
  const auto sample = SampleFile::open(options.file);
  if (!sample) return sample.error();
  const auto destination = parse_destination(options.to);
  if (!destination) return destination.error();
  const std::uint64_t size_bytes = std::stoull(options.size);
  auto target = destination->space == SpaceKind::host
                    ? allocate_host(size_bytes)
                    : allocate_device(destination->device, size_bytes);
  if (!target) return target.error();
  if (auto poisoned = (*target)->poison(); !poisoned) return poisoned.error();
  const auto before = std::chrono::steady_clock::now();
  auto file = File::open(options.file);
  if (!file) return file.error();
  CallOptions exact;
  exact.exact = true;
  const auto receipt = file->read_into((*target)->memory(), exact);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  if (!receipt) return receipt.error();
  if (auto right = verify(*sample, **target, size_bytes); !right) return right.error();
  const Times& times = receipt->times;
  const double first_copy_s =
      times.first_byte_ns < times.queued_ns
          ? 0
          : static_cast<double>(times.first_byte_ns - times.queued_ns) / 1e9;
  return Json{{"seconds", took.count()}, {"first_copy_s", first_copy_s}};
}

}  // namespace

FirstCall measure_first_call(const BenchRun& run) {
  FirstCall first;
  for (unsigned round = 0; round < run.rounds && interrupted() == 0; ++round) {
    run.terminal.show_progress(
        fmt::format("hot  first call of process {} of {}", round + 1, run.rounds));
    const auto child = run_again({"bench", "--first-call", "--to", run.to, "--size",
                                  std::to_string(run.size_bytes), "--", run.sample.path()},
                                 own_environment(), true);
    if (!child) {
      first.failure = child.error();
      return first;
    }
    const Json answer = parse_json(child->output);
    if (child->exit_code != 0 || !answer.is_object() || !answer.contains("seconds")) {
      first.failure = usage_error("measure the first call of a process",
                                  fmt::format("it ended with {}", child->exit_code));
      first.failure->kind = ErrorKind::io;
      return first;
    }
    first.seconds.push_back(answer["seconds"].get<double>());
    first.first_copy_s.push_back(answer["first_copy_s"].get<double>());
  }
  return first;
}

int run_first_call(const BenchOptions& options, Terminal& terminal) {
  const auto measured = first_call(options);
  if (!measured) return terminal.fail(measured.error(), false);
  terminal.print_line(dump(*measured));
  return 0;
}

}  // namespace straightway::tools
