#pragma once
// What lives from one open of the driver to its last close. Calls that are under way keep it alive.

#include <atomic>
#include <memory>
#include <string>

#include "cufile/buffers.hpp"
#include "cufile/configuration.hpp"
#include "cufile/handles.hpp"
#include "cufile/log.hpp"
#include "cufile/statistics.hpp"
#include "cufile/streams.hpp"
#include "straightway/context.hpp"

namespace straightway::cufile {

struct Session {
  Session(Configuration loaded, std::shared_ptr<Context> shared_context, int answered_version);
  // Ends the batches: nothing of them is in flight when it returns. Logs the statistics.
  void finish();
  // Closes the files that are still registered.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void set_max_direct_io_kb(std::uint64_t size_kb);
  // Once a GPU is in use: names all of them beside their counters.
  void show_gpus();
  CufileSettings layer() const;  // for files that are registered from now on

  const Configuration config;
  const std::shared_ptr<Context> context;
  const bool ordered;  // transfers come after the work queued on the default stream
  Log log;
  Statistics statistics;
  HandleTable handles;
  BufferTable buffers;
  StreamTable streams;
  std::shared_ptr<class BatchTable> batches;  // a type of batch.hpp, which needs this one
  std::atomic<std::uint64_t> pinned_limit_kb;

 private:
  std::atomic<std::uint64_t> max_direct_io_kb_{0};  // 0: as configured
  std::atomic<bool> gpus_shown_{false};
};

// Where the log goes: CUFILE_LOGFILE_PATH or what the API set, else logging.dir, else nowhere.
std::string log_path(const Configuration& config);

}  // namespace straightway::cufile
