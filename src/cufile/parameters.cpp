#include "cufile/parameters.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace straightway::cufile {
namespace {

constexpr int log_file_parameter = 1;  // CUFILE_PARAM_ENV_LOGFILE_PATH: no key of the file
constexpr int nvtx_parameter = 5;
constexpr int slab_limit = 1024;

constexpr std::array<Key, abi::size_parameter_count> size_keys = {
    Key::profile_cufile_stats,
    Key::max_io_queue_depth,
    Key::max_io_threads,
    Key::min_io_threshold_size_kb,
    Key::max_request_parallelism,
    Key::max_direct_io_size_kb,
    Key::max_device_cache_size_kb,
    Key::per_buffer_cache_size_kb,
    Key::max_device_pinned_mem_size_kb,
    Key::io_batchsize,
    Key::poll_mode_max_size_kb,
    Key::max_batch_io_timeout_msecs};

// What the vendor's library shows while it is closed and nothing was set.
constexpr std::array<std::size_t, abi::size_parameter_count> closed_sizes = {0, 128, 8, 1024, 4, 0,
                                                                             0, 0,   0, 0,    0, 0};

constexpr std::array<Key, abi::bool_parameter_count> bool_keys = {Key::use_poll_mode,
                                                                  Key::allow_compat_mode,
                                                                  Key::force_compat_mode,
                                                                  Key::api_check_aggressive,
                                                                  Key::parallel_io,
                                                                  Key::profile_nvtx,
                                                                  Key::allow_system_memory,
                                                                  Key::use_pci_p2pdma,
                                                                  Key::prefer_iouring,
                                                                  Key::force_odirect_mode,
                                                                  Key::skip_topology_detection,
                                                                  Key::stream_memops_bypass,
                                                                  Key::vanilla_posix_io_mode,
                                                                  Key::gds_fallback_io};

constexpr std::array<Key, abi::string_parameter_count> text_keys = {
    Key::logging_level, Key::logging_level, Key::logging_dir, Key::rdma_transport_type};

struct SlabKeys {
  Key sizes;
  Key counts;
};
constexpr std::array<SlabKeys, 2> slab_keys = {{
    {Key::posix_pool_slab_size_kb, Key::posix_pool_slab_count},
    {Key::gpu_bounce_slab_size_kb, Key::gpu_bounce_slab_count},
}};

template <class List>
bool has(const List& list, int parameter) {
  return parameter >= 0 && static_cast<std::size_t>(parameter) < list.size();
}

std::size_t at(int parameter) { return static_cast<std::size_t>(parameter); }

// Sets the value where it fits the key, else remarks on it.
void stage(Configuration& configuration, std::vector<Remark>& remarks, Key key,
           const KeyValue& value) {
  const std::string why = misfit(info(key), value);
  if (why.empty()) return configuration.set(key, value, Origin::api);
  remarks.push_back(
      {.error = true,
       .key = info(key).full_name(),
       .what = fmt::format("was set to {} and is not taken: {}", to_string(value), why),
       .origin = Origin::api});
}

std::int64_t as_number(std::size_t value) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, most));
}

Numbers as_numbers(const std::vector<std::size_t>& values) {
  Numbers numbers;
  for (const std::size_t value : values) numbers.push_back(as_number(value));
  return numbers;
}

abi::Code copy_text(const std::string& from, char* text, int text_bytes) {
  if (text_bytes < 0 || static_cast<std::size_t>(text_bytes) <= from.size()) {
    return abi::invalid_value;
  }
  std::memcpy(text, from.c_str(), from.size() + 1);
  return abi::success;
}

}  // namespace

abi::Code Staged::set_size(int parameter, std::size_t value) {
  if (!has(sizes, parameter)) return abi::invalid_value;
  sizes[at(parameter)] = value;
  return abi::success;
}

abi::Code Staged::set_bool(int parameter, bool value) {
  if (!has(bools, parameter)) return abi::invalid_value;
  bools[at(parameter)] = value;
  return abi::success;
}

abi::Code Staged::set_text(int parameter, const char* value) {
  if (!has(texts, parameter) || value == nullptr || *value == '\0') return abi::invalid_value;
  texts[at(parameter)] = value;
  return abi::success;
}

abi::Code Staged::set_slabs(Pool pool, const std::size_t* sizes_kb, const std::size_t* counts,
                            int count) {
  if (sizes_kb == nullptr || counts == nullptr || count <= 0 || count > slab_limit) {
    return abi::invalid_value;
  }
  slabs[static_cast<std::size_t>(pool)] =
      Slabs{{sizes_kb, sizes_kb + count}, {counts, counts + count}};
  return abi::success;
}

Configuration Staged::configuration(std::vector<Remark>& remarks) const {
  Configuration configuration;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i]) stage(configuration, remarks, size_keys[i], as_number(*sizes[i]));
  }
  for (std::size_t i = 0; i < bools.size(); ++i) {
    if (bools[i]) stage(configuration, remarks, bool_keys[i], *bools[i]);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i]) continue;
    if (i == log_file_parameter) {
      configuration.log_path = *texts[i];
    } else {
      stage(configuration, remarks, text_keys[i], *texts[i]);
    }
  }
  for (std::size_t i = 0; i < slabs.size(); ++i) {
    if (!slabs[i]) continue;
    const KeyValue sizes_kb = as_numbers(slabs[i]->sizes_kb);
    const KeyValue counts = as_numbers(slabs[i]->counts);
    const bool sizes_fit = misfit(info(slab_keys[i].sizes), sizes_kb).empty();
    const bool counts_fit = misfit(info(slab_keys[i].counts), counts).empty();
    // Both or neither; what is wrong is remarked on.
    if (counts_fit || !sizes_fit) stage(configuration, remarks, slab_keys[i].sizes, sizes_kb);
    if (sizes_fit || !counts_fit) stage(configuration, remarks, slab_keys[i].counts, counts);
  }
  return configuration;
}

abi::Code get_size(int parameter, const Staged& staged, const Configuration* running,
                   std::size_t* value) {
  if (value == nullptr || !has(size_keys, parameter)) return abi::invalid_value;
  const std::size_t i = at(parameter);
  *value = running != nullptr ? static_cast<std::size_t>(running->number(size_keys[i]))
                              : staged.sizes[i].value_or(closed_sizes[i]);
  return abi::success;
}

abi::Code get_bool(int parameter, const Staged& staged, const Configuration* running, bool* value) {
  if (value == nullptr || !has(bool_keys, parameter)) return abi::invalid_value;
  const std::size_t i = at(parameter);
  const bool set = running != nullptr ? running->get(bool_keys[i]).origin == Origin::api
                                      : staged.bools[i].has_value();
  if (parameter == nvtx_parameter && !set) return abi::invalid_value;
  *value = running != nullptr ? running->flag(bool_keys[i])
                              : staged.bools[i].value_or(bool_keys[i] == Key::parallel_io);
  return abi::success;
}

abi::Code get_text(int parameter, const Staged& staged, const Configuration* running, char* text,
                   int text_bytes) {
  if (text == nullptr || !has(text_keys, parameter)) return abi::invalid_value;
  const std::size_t i = at(parameter);
  if (running == nullptr) return copy_text(staged.texts[i].value_or(""), text, text_bytes);
  const bool log_file = parameter == log_file_parameter;
  return copy_text(log_file ? running->log_path : running->text(text_keys[i]), text, text_bytes);
}

abi::Code get_slabs(Pool pool, const Staged& staged, const Configuration* running,
                    std::size_t* sizes_kb, std::size_t* counts, int count) {
  const auto i = static_cast<std::size_t>(pool);
  if (sizes_kb == nullptr || counts == nullptr || count <= 0) return abi::invalid_value;
  Slabs slabs = staged.slabs[i].value_or(Slabs{});
  if (running != nullptr) {
    const Numbers& sizes = running->numbers(slab_keys[i].sizes);
    const Numbers& numbers = running->numbers(slab_keys[i].counts);
    slabs = {{sizes.begin(), sizes.end()}, {numbers.begin(), numbers.end()}};
    slabs.counts.resize(slabs.sizes_kb.size());
  }
  if (slabs.sizes_kb.size() != static_cast<std::size_t>(count)) return abi::invalid_value;
  std::ranges::copy(slabs.sizes_kb, sizes_kb);
  std::ranges::copy(slabs.counts, counts);
  return abi::success;
}

abi::Code get_range(int parameter, std::size_t* least, std::size_t* most) {
  if (least == nullptr || most == nullptr || !has(size_keys, parameter)) return abi::invalid_value;
  const KeyInfo& key = info(size_keys[at(parameter)]);
  if (key.key == Key::profile_cufile_stats) return abi::invalid_value;
  *least = static_cast<std::size_t>(key.least);
  *most = static_cast<std::size_t>(key.most);
  return abi::success;
}

}  // namespace straightway::cufile
