#include "cufile/driver.hpp"

#include <utility>

#include "cufile/machine.hpp"
#include "cufile/version.hpp"

namespace straightway::cufile {

std::shared_ptr<Session> Driver::session() const {
  const std::shared_lock lock(session_mutex_);
  return session_;
}

void Driver::warn(std::string_view text) const {
  if (const auto now = session()) now->log.write(LogLevel::warn, text);
}

// Left alone at exit with the driver itself: transfers of other threads may still use it.
Result<std::shared_ptr<Context>> Driver::context_locked() {
  if (!context_) {
    ContextOptions options;
    options.on_warning = [this](std::string_view text) { warn(text); };
    auto made = make_context(options);
    if (!made) return made.error();
    context_ = std::move(*made);
  }
  return context_;
}

Opened Driver::open_locked() {
  std::vector<Remark> remarks;
  auto config = load_configuration(environment_, staged_.configuration(remarks));
  auto context = context_locked();
  if (!config || !context) {
    const Error& error = config ? context.error() : config.error();
    Log(environment_("CUFILE_LOGFILE_PATH").value_or(""), LogLevel::error, -1)
        .write(LogLevel::error, error.message());
    return {nullptr, abi::driver_invalid_props};
  }
  const int level = stats_level_.exchange(-1);
  if (level >= 0) config->set(Key::profile_cufile_stats, std::int64_t{level}, Origin::api);
  auto made = std::make_shared<Session>(std::move(*config), std::move(*context), version());
  for (const Remark& remark : remarks) made->log.write(LogLevel::error, remark.text());
  if (staged_max_direct_kb_ != 0) made->set_max_direct_io_kb(staged_max_direct_kb_);
  if (staged_max_pinned_kb_ != 0) made->pinned_limit_kb.store(staged_max_pinned_kb_);
  staged_ = {};
  staged_max_direct_kb_ = staged_max_pinned_kb_ = 0;
  const std::unique_lock lock(session_mutex_);
  session_ = made;
  was_open_.store(true);
  return {std::move(made), abi::success};
}

Opened Driver::use_locked() {
  if (auto now = session()) return {std::move(now), abi::success};
  Opened opened = open_locked();
  if (opened.session) use_count_.store(1);
  return opened;
}

Opened Driver::use() {
  if (auto now = session()) return {std::move(now), abi::success};
  const std::lock_guard lock(opening_);
  return use_locked();
}

abi::Code Driver::open() {
  const std::lock_guard lock(opening_);
  if (session()) {
    use_count_.fetch_add(1);
    return abi::success;
  }
  return use_locked().code;
}

abi::Code Driver::close() {
  std::shared_ptr<Session> ended;
  {
    const std::lock_guard lock(opening_);
    if (use_count_.load() == 0) return abi::driver_not_initialized;
    if (use_count_.fetch_sub(1) != 1) return abi::success;
    const std::unique_lock unique(session_mutex_);
    ended.swap(session_);
  }
  if (ended) ended->finish();  // without the locks: it waits for transfers
  return abi::success;
}

abi::Code Driver::set_max_direct_io_kb(std::uint64_t size_kb) {
  const std::lock_guard lock(opening_);
  if (const auto now = session()) {
    now->set_max_direct_io_kb(size_kb);
  } else {
    staged_max_direct_kb_ = size_kb;
  }
  return abi::success;
}

abi::Code Driver::set_max_pinned_kb(std::uint64_t size_kb) {
  const std::lock_guard lock(opening_);
  if (const auto now = session()) {
    now->pinned_limit_kb.store(size_kb);
  } else {
    staged_max_pinned_kb_ = size_kb;
  }
  return abi::success;
}

int Driver::stats_level() const {
  const auto now = session();
  return now ? now->statistics.level() : std::max(0, stats_level_.load());
}

abi::Code Driver::set_stats_level(int level) {
  if (level < 0 || level > 3) return abi::invalid_value;
  if (const auto now = session()) {
    now->statistics.set_level(level);
  } else {
    stats_level_.store(level);
  }
  return abi::success;
}

int Driver::version() {
  if (version_.load() == 0) version_.store(answered_version(environment_));
  return version_.load();
}

}  // namespace straightway::cufile
