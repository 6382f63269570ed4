#include "cufile/session.hpp"

#include <utility>

#include "cufile/batch.hpp"
#include "cufile/environment.hpp"
#include "cufile/gds_stats.hpp"
#include "cufile/registration.hpp"
#include "os/system_text.hpp"
#include "plan/settings.hpp"

namespace straightway::cufile {
namespace {

// Ours: whether transfers come after the work that is queued on the legacy default stream.
bool read_ordered() {
  const auto text = read_variable("STRAIGHTWAY_CUFILE_ORDERED");
  if (!text) return true;
  return plan::parse_bool("STRAIGHTWAY_CUFILE_ORDERED", *text).ok()
             ? *plan::parse_bool("STRAIGHTWAY_CUFILE_ORDERED", *text)
             : true;
}

}  // namespace

std::string log_path(const Configuration& config) {
  if (config.log_switched_off) return "";
  const std::string& named = config.log_path;
  if (!named.empty()) return os::is_directory(named) ? named + "/cufile.log" : named;
  const std::string& folder = config.text(Key::logging_dir);
  return folder.empty() ? "" : folder + "/cufile.log";
}

Session::Session(Configuration loaded, std::shared_ptr<Context> shared_context,
                 int answered_version)
    : config(std::move(loaded)),
      context(std::move(shared_context)),
      ordered(read_ordered()),
      log(log_path(config), log_level(config.text(Key::logging_level)),
          config.number(Key::logging_max_file_size_mb)),
      statistics(answered_version, static_cast<int>(config.number(Key::profile_cufile_stats))),
      batches(std::make_shared<BatchTable>()),
      pinned_limit_kb(
          static_cast<std::uint64_t>(config.number(Key::max_device_pinned_mem_size_kb))) {
  log.write(LogLevel::info, config.file().empty() ? "no cufile.json: the shipped values hold"
                                                  : "configuration: " + config.file());
  for (const Remark& remark : config.remarks()) {
    log.write(remark.error ? LogLevel::error : LogLevel::warn, remark.text());
  }
}

void Session::finish() {
  batches->finish_all();
  const int level = statistics.level();
  if (level == 0 || !log.wants(LogLevel::info)) return;
  const auto machine = context->machine(false);
  const int gpus = machine ? (*machine)->cuda_devices : 0;
  const std::string text =
      gds_stats_text(*statistics.snapshot(static_cast<std::uint64_t>(gpus), device_uuid), level);
  std::string_view rest = text;
  while (!rest.empty()) log.write(LogLevel::info, os::take_field(rest, '\n'));
}

Session::~Session() = default;

void Session::set_max_direct_io_kb(std::uint64_t size_kb) { max_direct_io_kb_.store(size_kb); }

void Session::show_gpus() {
  if (gpus_shown_.load(std::memory_order_relaxed) || gpus_shown_.exchange(true)) return;
  const auto machine = context->machine(true);
  if (machine && (*machine)->cuda_devices > 0) {
    statistics.show_gpus(static_cast<std::uint64_t>((*machine)->cuda_devices), device_uuid);
  }
}

CufileSettings Session::layer() const {
  CufileSettings settings = config.layer();
  const std::uint64_t size_kb = max_direct_io_kb_.load();
  if (size_kb != 0) settings.max_direct_io_size_kb = {size_kb, Origin::api};
  return settings;
}

}  // namespace straightway::cufile
