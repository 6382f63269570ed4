// Writes, into a file that has no name, so that nothing is left of it whatever happens.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "arguments.hpp"
#include "bench_run.hpp"
#include "interrupt.hpp"
#include "os/descriptor.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{2} << 30;

struct Written {
  std::string folder;
  os::Descriptor fd;
  File file;
  std::uint64_t size_bytes = 0;
};

std::string folder_for(const BenchRun& run) {
  if (!run.options.write_to.empty()) return run.options.write_to;
  const auto parent = std::filesystem::path(run.sample.path()).parent_path();
  return parent.empty() ? "." : parent.string();
}

Result<os::Descriptor> make_nameless(const std::string& folder) {
  std::string path = folder + "/.straightway-bench-XXXXXX";
  os::Descriptor fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd) {
    Error error = system_error(errno, "make a file in", folder);
    error.advice = "name another folder with --write-to";
    return error;
  }
  ::unlink(path.c_str());
  return fd;
}

Result<void> check_space(const std::string& folder, std::uint64_t size_bytes) {
  struct statvfs status;
  if (::statvfs(folder.c_str(), &status) != 0) return {};
  const std::uint64_t free_bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
  if (free_bytes / 10 * 9 >= size_bytes) return {};
  Error error =
      usage_error("write there", fmt::format("only {} are free", plan::format_bytes(free_bytes)));
  error.kind = ErrorKind::no_space;
  error.path = folder;
  return error;
}

Result<Written> begin(const BenchRun& run) {
  Written written;
  written.folder = folder_for(run);
  written.size_bytes = std::min(run.size_bytes, most_bytes);
  if (auto space = check_space(written.folder, written.size_bytes); !space) return space.error();
  auto fd = make_nameless(written.folder);
  if (!fd) return fd.error();
  written.fd = std::move(*fd);
  auto file = File::from_descriptor(written.fd.get());
  if (!file) return file.error();
  written.file = std::move(*file);
  return written;
}

// Each run writes a new file: empty, with nothing of the last one left to write back.
Result<void> empty(const Written& written) {
  if (::ftruncate(written.fd.get(), 0) == 0) return {};
  return system_error(errno, "empty", written.folder);
}

// The file's own bytes, brought by the driver, not by the library.
Result<void> load_source(const BenchRun& run, std::uint64_t size_bytes) {
  return each_piece(size_bytes, mib, run.threads, [&](const Piece& piece) -> Result<void> {
    char* buffer = run.area->data() + piece.thread * mib;
    auto read = read_piece(run.sample.descriptor(), run.sample.path(), piece.offset, buffer,
                           piece.size_bytes);
    if (!read) return read;
    return run.target->load(piece.offset, buffer, piece.size_bytes);
  });
}

Way raw_way(const BenchRun& run, const Written& written, const RawWay& raw) {
  Way way;
  way.name = raw.name;
  way.prepare = [&written] { return empty(written); };
  way.run = [&run, &written, &raw] {
    return write_raw(raw, written.fd.get(), written.folder, written.size_bytes, run.area->data());
  };
  return way;
}

Way own_way(const BenchRun& run, const Written& written, BenchCase& result, Cache cache) {
  Way way;
  way.name = std::string("straightway, cache ") + to_string(cache);
  way.prepare = [&written] { return empty(written); };
  way.run = [&run, &written, &result, cache]() -> Result<void> {
    CallOptions options;
    options.cache = cache;
    const auto job = written.file.submit_write(run.memory(0, written.size_bytes), options);
    if (!job) return job.error();
    const auto receipt = wait_for(*job, {});
    if (!receipt) return receipt.error();
    result.pinned_bytes = receipt->pinned_bytes;
    return {};
  };
  way.finish = [&run, &written] {
    return run.fingerprint.check_file(written.fd.get(), written.folder, written.size_bytes,
                                      run.threads);
  };
  return way;
}

Ceiling best(const BenchRun& run, const std::string& prefix) {
  Ceiling ceiling;
  for (const auto& [name, gbs] : run.ceilings.write) {
    if (name.starts_with(prefix) && gbs > ceiling.gbs) ceiling = {name, gbs};
  }
  return ceiling;
}

}  // namespace

Result<void> measure_write(BenchRun& run) {
  auto written = begin(run);
  if (!written) {
    run.cases.push_back(skip_case("write", written.error().message()));
    return {};
  }
  if (auto loaded = load_source(run, written->size_bytes); !loaded) return loaded;
  BenchCase cached = make_case("write", written->size_bytes);
  BenchCase direct = make_case("write bypass", written->size_bytes);
  std::vector<Way> raw;
  raw.reserve(raw_write_ways.size());
  for (const RawWay& way : raw_write_ways) raw.push_back(raw_way(run, *written, way));
  Way cached_way = own_way(run, *written, cached, Cache::automatic);
  Way direct_way = own_way(run, *written, direct, Cache::bypass);
  std::vector<Way*> ways;
  ways.reserve(raw.size() + 2);
  for (Way& way : raw) ways.push_back(&way);
  ways.insert(ways.end(), {&cached_way, &direct_way});
  if (auto done = alternate("write", ways, run.rounds, run.terminal); !done) return done;
  for (const Way& way : raw) {
    if (way.measured()) run.ceilings.write[way.name] = median_gbs(way, written->size_bytes);
  }
  fill(cached, cached_way, best(run, "page cache"));
  fill(direct, direct_way, best(run, "O_DIRECT"));
  run.cases.push_back(std::move(cached));
  run.cases.push_back(std::move(direct));
  return {};
}

}  // namespace straightway::tools
