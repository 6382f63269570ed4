// straightway demo: the main job on a real file, verified by an independent way.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "arguments.hpp"
#include "commands.hpp"
#include "interrupt.hpp"
#include "json.hpp"
#include "memory_left.hpp"
#include "plan/settings.hpp"
#include "plan/units.hpp"
#include "sample_file.hpp"
#include "simulated_gpu.hpp"
#include "target.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t made_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t most_bytes_unasked = std::uint64_t{1} << 30;
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

constexpr const char* simulation_note =
    "The GPU is simulated: a stand-in for the CUDA driver from the tests keeps its memory in host\n"
    "memory. Both layers and all routes are real code; the speed means nothing.\n";

// What the demo learned, whether it is printed as text or as JSON.
struct Demonstration {
  std::optional<Plan> plan;
  std::optional<Receipt> receipt;
  std::string target;
  std::string witness;
  bool verified = false;
};

Result<SampleFile> choose_file(const DemoOptions& options, Terminal& terminal) {
  if (!options.file.empty()) return SampleFile::open(options.file);
  if (options.size.empty()) return SampleFile::make("demo", made_bytes, terminal);
  const auto size = plan::parse_size("--size", options.size);
  if (!size) return size.error();
  if (*size == 0) {
    return usage_error("use --size=" + options.size, "it asks for no bytes", "write 256M, 1G, ...");
  }
  return SampleFile::make("demo", *size, terminal);
}

// How much of the file is read: all of it, unless that is a lot and nobody asked for it.
Result<std::uint64_t> choose_size(const DemoOptions& options, const SampleFile& file, bool gpu) {
  std::uint64_t size_bytes = std::min(file.size_bytes(), most_bytes_unasked);
  if (!options.size.empty()) {
    auto asked = plan::parse_size("--size", options.size);
    if (!asked) return asked;
    size_bytes = std::min(file.size_bytes(), *asked);
  }
  if (size_bytes == 0) {
    Error error = usage_error("read", "the file is empty");
    error.path = file.path();
    return error;
  }
  if (gpu) return size_bytes;  // the driver refuses what does not fit
  if (auto fits = check_fits(size_bytes); !fits) return fits.error();
  return size_bytes;
}

// Compares all bytes with what plain pread() gives.
Result<void> verify(const SampleFile& file, const Target& target, std::uint64_t size_bytes,
                    Terminal& terminal) {
  ProgressLine progress(terminal, "verifying", size_bytes);
  std::vector<char> expected(piece_bytes);
  std::vector<char> found(piece_bytes);
  for (std::uint64_t offset = 0; offset < size_bytes; offset += piece_bytes) {
    if (interrupted() != 0) return interrupted_error("verify");
    const std::size_t size = std::min<std::uint64_t>(piece_bytes, size_bytes - offset);
    if (auto read = file.read_plainly(offset, expected.data(), size); !read) return read;
    if (auto fetched = target.fetch(offset, found.data(), size); !fetched) return fetched;
    if (std::memcmp(expected.data(), found.data(), size) != 0) {
      const auto at = std::mismatch(expected.begin(), expected.begin() + size, found.begin());
      Error error = usage_error("verify", "the bytes in memory differ from those in the file");
      error.kind = ErrorKind::io;
      error.path = file.path();
      error.offset = offset + static_cast<std::uint64_t>(at.first - expected.begin());
      error.advice = "unless another program wrote to the file meanwhile, this is a bug: report it";
      return error;
    }
    progress.show(offset + size);
  }
  return {};
}

Result<Receipt> read_with_progress(const File& file, const Target& target, std::uint64_t size_bytes,
                                   Terminal& terminal) {
  ProgressLine line(terminal, "reading", size_bytes);
  auto job = file.submit_read(target.memory());
  if (!job) return job.error();
  auto receipt = wait_for(*job, [&](const Progress& progress) { line.show(progress.moved_bytes); });
  if (!receipt && interrupted() != 0) {
    terminal.warn(fmt::format("{} of {} had been read",
                              plan::format_bytes(job->progress().moved_bytes),
                              plan::format_bytes(size_bytes)));
  }
  return receipt;
}

// Each section of the text is printed as soon as it is known, unless quiet.
Result<void> demonstrate(Demonstration& shown, const SampleFile& sample, Target& target,
                         std::uint64_t size_bytes, Terminal& terminal, bool quiet) {
  const auto section = [&](const char* title, const std::string& text) {
    if (quiet) return;
    terminal.print(fmt::format("\n{}\n{}{}", terminal.paint(Paint::bold, title), text,
                               text.ends_with('\n') ? "" : "\n"));
  };
  shown.target = target.name();
  shown.witness = target.witness();
  if (auto poisoned = target.poison(); !poisoned) return poisoned;
  auto file = File::open(sample.path());
  if (!file) return file.error();
  auto plan = file->explain(Direction::read, target.memory());
  if (!plan) return plan.error();
  shown.plan = std::move(*plan);
  section("The plan", shown.plan->to_text());
  auto receipt = read_with_progress(*file, target, size_bytes, terminal);
  if (!receipt) return receipt.error();
  shown.receipt = std::move(*receipt);
  section("The receipt", shown.receipt->to_text());
  if (auto verified = verify(sample, target, size_bytes, terminal); !verified) return verified;
  shown.verified = true;
  section("Verified", fmt::format("all {} bytes, by {}", size_bytes, shown.witness));
  return {};
}

Json to_json(const Demonstration& shown) {
  Json json = {{"target", shown.target}, {"verified", shown.verified}, {"witness", shown.witness}};
  json["plan"] = shown.plan ? parse_json(shown.plan->to_json()) : Json(nullptr);
  json["receipt"] = shown.receipt ? parse_json(shown.receipt->to_json()) : Json(nullptr);
  return json;
}

// A failure, or the end by Ctrl-C.
int end_badly(const Error& error, bool json, Terminal& terminal) {
  const int code = terminal.fail(error, json);
  return interrupted() != 0 ? interrupted_exit_code() : code;
}

// The machine's first GPU, or nothing. A simulated one counts only where it was asked for.
Result<bool> has_gpu(bool simulated) {
  const auto context = Context::process_default();
  if (!context) return context.error();
  const auto machine = (*context)->machine(true);
  if (!machine) return machine.error();
  const bool usable = (*machine)->cuda_devices > 0;
  if (simulated && !(usable && (*machine)->cuda_simulated)) {
    return usage_error("use the simulated GPU", "another CUDA driver answered",
                       "start the demo without --simulated");
  }
  return usable && (*machine)->cuda_simulated == simulated;
}

std::vector<std::string> child_arguments(const SampleFile& file, std::uint64_t size_bytes,
                                         bool json) {
  std::vector<std::string> words = {"demo", "--simulated", "--size", std::to_string(size_bytes)};
  if (json) words.emplace_back("--json");
  words.emplace_back("--");
  words.push_back(file.path());
  return words;
}

// The same into the simulated GPU. Without that library the demo is complete as it is.
Result<int> add_simulation(const SampleFile& file, std::uint64_t size_bytes, Json& json,
                           bool as_json, Terminal& terminal) {
  const auto folder = find_simulated_gpu();
  if (!folder) return folder.error();
  if (!*folder) {
    if (!as_json) {
      terminal.print(
          "\nNo GPU here, and no simulated one either: that comes with a build from source.\n");
    }
    json["simulated"] = nullptr;
    return 0;
  }
  if (!as_json) {
    terminal.print(fmt::format(
        "\n{}\n{}", terminal.paint(Paint::bold, "No GPU here: a simulated one"), simulation_note));
  }
  const auto child =
      run_with_simulated_gpu(**folder, child_arguments(file, size_bytes, as_json), as_json);
  if (!child) return child.error();
  if (as_json) json["simulated"] = parse_json(child->output);
  return child->exit_code;
}

std::string heading(const SampleFile& file, std::uint64_t size_bytes, const Target& target) {
  const std::string part = size_bytes == file.size_bytes()
                               ? plan::format_bytes(size_bytes)
                               : fmt::format("the first {} of {}", plan::format_bytes(size_bytes),
                                             plan::format_bytes(file.size_bytes()));
  return fmt::format("{}{}, {}, into {}\n", file.path(),
                     file.made() ? " (made for this demo, removed at its end)" : "", part,
                     target.name());
}

}  // namespace

int run_demo(const DemoOptions& options, Terminal& terminal) {
  notice_interrupts();
  const auto fail = [&](const Error& error) { return end_badly(error, options.json, terminal); };
  const auto gpu = has_gpu(options.simulated);
  if (!gpu) return fail(gpu.error());
  const auto file = choose_file(options, terminal);
  if (!file) return fail(file.error());
  const auto size = choose_size(options, *file, *gpu);
  if (!size) return fail(size.error());
  auto target = *gpu ? allocate_device(0, *size) : allocate_host(*size);
  if (!target) return fail(target.error());
  if (!options.json) terminal.print(heading(*file, *size, **target));
  Demonstration shown;
  const auto done = demonstrate(shown, *file, **target, *size, terminal, options.json);
  if (!done) return fail(done.error());
  Json json = {{"file", file->path()}, {"size_bytes", *size}, {"made", file->made()}};
  json.update(to_json(shown));
  int code = 0;
  if (!*gpu) {
    target->reset();
    const auto simulation = add_simulation(*file, *size, json, options.json, terminal);
    if (!simulation) return fail(simulation.error());
    code = *simulation;
  }
  if (options.json) terminal.print_line(dump(json));
  return interrupted() != 0 ? interrupted_exit_code() : code;
}

}  // namespace straightway::tools
