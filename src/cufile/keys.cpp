#include "cufile/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/settings.hpp"

namespace straightway::cufile {
namespace {

constexpr std::int64_t most_kb = 268435456;
constexpr std::int64_t most_threshold_kb = 4294967295;
constexpr std::int64_t most_poll_kb = 18014398509481980;
constexpr std::string_view levels = " NOTICE ERROR WARN INFO DEBUG TRACE ";
constexpr std::string_view policies = " FirstFit MaxMinFit RoundRobin RoundRobinMaxMin Randomized ";
constexpr const char* none = nullptr;

KeyInfo flag(Key key, std::string_view section, std::string_view name, bool standard, Effect effect,
             const char* variable = none, std::string_view alias = {}) {
  return {key, section, name, alias, variable, standard, 0, 0, 1, effect, {}};
}

struct Range {
  std::int64_t least;
  std::int64_t most;
  std::int64_t step = 1;
};

KeyInfo number(Key key, std::string_view section, std::string_view name, std::int64_t standard,
               Range range, Effect effect, const char* variable = none,
               std::string_view alias = {}) {
  return {key,         section,    name,       alias,  variable, standard,
          range.least, range.most, range.step, effect, {}};
}

KeyInfo text(Key key, std::string_view section, std::string_view name, const char* standard,
             Effect effect, std::string_view words = {}, const char* variable = none,
             std::string_view alias = {}) {
  return {key, section, name, alias, variable, std::string(standard), 0, 0, 1, effect, words};
}

KeyInfo texts(Key key, std::string_view section, std::string_view name, Effect effect,
              Texts standard = {}, std::string_view alias = {}) {
  return {key, section, name, alias, none, std::move(standard), 0, 0, 1, effect, {}};
}

KeyInfo numbers(Key key, std::string_view section, std::string_view name, Numbers standard,
                Range range, Effect effect) {
  return {key,         section,    name,       {},     none, std::move(standard),
          range.least, range.most, range.step, effect, {}};
}

void add_general(std::vector<KeyInfo>& list) {
  using enum Effect;
  const auto add = [&](KeyInfo key) { list.push_back(std::move(key)); };
  add(text(Key::logging_dir, "logging", "dir", "", acts));
  add(text(Key::logging_level, "logging", "level", "ERROR", acts, levels, "CUFILE_LOGGING_LEVEL"));
  add(number(Key::logging_max_file_size_mb, "logging", "max_file_size_mb", 32, {-1, 4096}, acts,
             "CUFILE_LOGFILE_MAX_SIZE_MB"));
  add(flag(Key::profile_nvtx, "profile", "nvtx", false, no_cause, "CUFILE_NVTX"));
  add(number(Key::profile_cufile_stats, "profile", "cufile_stats", 0, {0, 3}, acts,
             "CUFILE_STATS_LEVEL"));
  add(number(Key::max_io_queue_depth, "execution", "max_io_queue_depth", 128, {1, 256}, ours));
  add(number(Key::max_io_threads, "execution", "max_io_threads", 4, {0, 128}, counts));
  add(flag(Key::parallel_io, "execution", "parallel_io", true, counts));
  add(number(Key::min_io_threshold_size_kb, "execution", "min_io_threshold_size_kb", 8192,
             {4, most_threshold_kb}, counts));
  add(number(Key::max_request_parallelism, "execution", "max_request_parallelism", 4, {0, 8},
             counts));
}

void add_sizes(std::vector<KeyInfo>& list) {
  using enum Effect;
  constexpr std::string_view in = "properties";
  const auto add = [&](KeyInfo key) { list.push_back(std::move(key)); };
  add(number(Key::max_direct_io_size_kb, in, "max_direct_io_size_kb", 16384, {64, 16384, 64},
             counts));
  add(number(Key::max_device_cache_size_kb, in, "max_device_cache_size_kb", 131072, {0, most_kb},
             vendor));
  add(number(Key::per_buffer_cache_size_kb, in, "per_buffer_cache_size_kb", 1024, {64, 16384, 64},
             vendor));
  add(numbers(Key::gpu_bounce_slab_size_kb, "properties.gpu_bounce_buffer_slab_config",
              "slab_size_kb", {1024, 8192, 16384, 65536}, {4, most_kb, 4}, ours));
  add(numbers(Key::gpu_bounce_slab_count, "properties.gpu_bounce_buffer_slab_config", "slab_count",
              {128, 8, 4, 2}, {1, 65536}, ours));
  add(number(Key::max_device_pinned_mem_size_kb, in, "max_device_pinned_mem_size_kb", 33554432,
             {64, most_kb}, acts));
  add(numbers(Key::posix_pool_slab_size_kb, in, "posix_pool_slab_size_kb", {4, 1024, 16384},
              {4, most_kb, 4}, ours));
  add(numbers(Key::posix_pool_slab_count, in, "posix_pool_slab_count", {128, 64, 64}, {1, 65536},
              ours));
  add(flag(Key::use_poll_mode, in, "use_poll_mode", false, vendor));
  add(number(Key::poll_mode_max_size_kb, in, "poll_mode_max_size_kb", 4, {4, most_poll_kb, 4},
             vendor));
  add(number(Key::io_batchsize, in, "io_batchsize", 128, {1, 256}, acts, none,
             "profile.io_batchsize properties.max_batch_io_size"));
  add(number(Key::max_batch_io_timeout_msecs, in, "max_batch_io_timeout_msecs", 5, {1, 1000},
             vendor));
}

void add_ways(std::vector<KeyInfo>& list) {
  using enum Effect;
  constexpr std::string_view in = "properties";
  const auto add = [&](KeyInfo key) { list.push_back(std::move(key)); };
  add(flag(Key::allow_compat_mode, in, "allow_compat_mode", true, acts, "CUFILE_ALLOW_COMPAT_MODE",
           "properties.use_compat_mode"));
  add(flag(Key::force_compat_mode, in, "force_compat_mode", false, acts,
           "CUFILE_FORCE_COMPAT_MODE"));
  add(flag(Key::use_pci_p2pdma, in, "use_pci_p2pdma", false, acts, "CUFILE_USE_PCIP2PDMA"));
  add(flag(Key::gds_rdma_write_support, in, "gds_rdma_write_support", true, vendor));
  add(text(Key::io_priority, in, "io_priority", "default", vendor, " default low med high "));
  add(flag(Key::force_odirect_mode, in, "force_odirect_mode", false, no_cause));
  add(flag(Key::prefer_iouring, in, "prefer_iouring", false, no_cause));
  add(flag(Key::allow_system_memory, in, "allow_system_memory", true, acts));
  add(flag(Key::vanilla_posix_io_mode, in, "vanilla_posix_io_mode", false, acts));
  add(flag(Key::gds_fallback_io, in, "gds_fallback_io", false, vendor));
  add(flag(Key::compat_odirect_unaligned_read_split, in, "compat_odirect_unaligned_read_split",
           false, no_cause));
  add(number(Key::compat_odirect_unaligned_read_split_min_size_kb, in,
             "compat_odirect_unaligned_read_split_min_size_kb", 128, {0, most_kb}, no_cause));
}

void add_rdma(std::vector<KeyInfo>& list) {
  using enum Effect;
  constexpr std::string_view in = "properties";
  const auto add = [&](KeyInfo key) { list.push_back(std::move(key)); };
  add(texts(Key::rdma_dev_addr_list, in, "rdma_dev_addr_list", vendor));
  add(text(Key::rdma_load_balancing_policy, in, "rdma_load_balancing_policy", "RoundRobin", vendor,
           policies, none, "properties.rdma_peer_affinity_policy"));
  add(number(Key::rdma_top_n_ranks, in, "rdma_topN_ranks", 1, {0, 65536}, vendor));
  add(text(Key::rdma_transport_type, in, "rdma_transport_type", "DC_V1", vendor,
           " DC_V1 EXT_RC_V1 "));
  add(flag(Key::rdma_dynamic_routing, in, "rdma_dynamic_routing", false, vendor));
  add(texts(Key::rdma_dynamic_routing_order, in, "rdma_dynamic_routing_order", vendor,
            {"GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P"}));
  add(text(Key::rdma_peer_type, in, "rdma_peer_type", "nvidia_peermem", vendor,
           " nvidia_peermem peer_mem dmabuf "));
  add(text(Key::rdma_dc_key, in, "rdma_dc_key", "0xffeeddcc", vendor, {}, "CUFILE_RDMA_DC_KEY"));
  add(text(Key::rdma_access_mask, in, "rdma_access_mask", "0x1f", vendor));
  add(flag(Key::rdma_multipath_enabled, in, "rdma_multipath_enabled", false, vendor));
  add(number(Key::max_backup_devices, in, "max_backup_devices", 0, {0, 65536}, vendor));
  add(number(Key::io_retry_count, in, "io_retry_count", 0, {0, 65536}, vendor));
  add(flag(Key::allow_rdma_token_reset, in, "allow_rdma_token_reset", false, vendor));
}

void add_filesystems(std::vector<KeyInfo>& list) {
  using enum Effect;
  const auto add = [&](KeyInfo key) { list.push_back(std::move(key)); };
  add(flag(Key::posix_unaligned_writes, "fs.generic", "posix_unaligned_writes", false, vendor));
  add(number(Key::lustre_posix_gds_min_kb, "fs.lustre", "posix_gds_min_kb", 0, {0, most_kb},
             vendor));
  add(number(Key::beegfs_posix_gds_min_kb, "fs.beegfs", "posix_gds_min_kb", 0, {0, most_kb},
             vendor));
  add(number(Key::scatefs_posix_gds_min_kb, "fs.scatefs", "posix_gds_min_kb", 0, {0, most_kb},
             vendor));
  constexpr std::string_view sections[] = {"fs.lustre", "fs.beegfs", "fs.scatefs",
                                           "fs.nfs",    "fs.gpfs",   "fs.weka"};
  const auto each = [&](Key first, std::string_view name, std::size_t count, bool is_flag) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto key = static_cast<Key>(static_cast<std::size_t>(first) + i);
      add(is_flag ? flag(key, sections[i], name, false, vendor)
                  : texts(key, sections[i], name, vendor));
    }
  };
  each(Key::lustre_use_pci_p2pdma, "use_pci_p2pdma", 5, true);
  add(flag(Key::virtiofs_use_pci_p2pdma, "fs.virtiofs", "use_pci_p2pdma", false, vendor));
  each(Key::lustre_rdma_dev_addr_list, "rdma_dev_addr_list", 6, false);
  each(Key::lustre_mount_table, "mount_table", 6, false);
  add(flag(Key::weka_rdma_write_support, "fs.weka", "rdma_write_support", false, vendor));
  add(flag(Key::gpfs_gds_write_support, "fs.gpfs", "gds_write_support", false, vendor));
  add(flag(Key::gpfs_gds_async_support, "fs.gpfs", "gds_async_support", true, vendor));
}

void add_rest(std::vector<KeyInfo>& list) {
  using enum Effect;
  const auto add = [&](KeyInfo key) { list.push_back(std::move(key)); };
  add(flag(Key::nvme_use_pci_p2pdma, "block.nvme", "use_pci_p2pdma", false, vendor));
  add(flag(Key::nvmeof_use_pci_p2pdma, "block.nvmeof", "use_pci_p2pdma", false, vendor));
  add(flag(Key::raid_use_pci_p2pdma, "block.raid", "use_pci_p2pdma", false, vendor));
  add(flag(Key::raid1_use_pci_p2pdma, "block.raid1", "use_pci_p2pdma", false, vendor));
  add(flag(Key::raid10_use_pci_p2pdma, "block.raid10", "use_pci_p2pdma", false, vendor));
  add(texts(Key::denylist_drivers, "denylist", "drivers", vendor, {}, "blacklist.drivers"));
  add(texts(Key::denylist_devices, "denylist", "devices", vendor, {}, "blacklist.devices"));
  add(texts(Key::denylist_mounts, "denylist", "mounts", vendor, {}, "blacklist.mounts"));
  add(texts(Key::denylist_filesystems, "denylist", "filesystems", vendor, {},
            "blacklist.filesystems"));
  constexpr std::string_view in = "miscellaneous";
  add(flag(Key::api_check_aggressive, in, "api_check_aggressive", false, no_cause));
  add(flag(Key::skip_topology_detection, in, "skip_topology_detection", false, no_cause,
           "CUFILE_SKIP_TOPOLOGY_DETECTION"));
  add(flag(Key::stream_memops_bypass, in, "stream_memops_bypass", false, no_cause));
  add(flag(Key::enable_static_routing, in, "enable_static_routing", false, vendor));
  add(text(Key::static_routing_filepath, in, "static_routing_filepath", "/etc/topology.json",
           vendor));
  add(number(Key::rdma_token_reset_timeout_secs, in, "rdma_token_reset_timeout_secs", 30,
             {0, 65536}, vendor));
  add(number(Key::sparse_min_p2pdma_threshold_kb, "sparse", "min_p2pdma_threshold_kb", 8,
             {0, most_kb}, vendor));
  add(flag(Key::sparse_p2p_compat_enable, "sparse", "p2p_compat_enable", true, vendor));
}

std::vector<KeyInfo> make_keys() {
  std::vector<KeyInfo> list;
  list.reserve(key_count);
  add_general(list);
  add_sizes(list);
  add_ways(list);
  add_rdma(list);
  add_filesystems(list);
  add_rest(list);
  std::ranges::sort(list, {}, &KeyInfo::key);
  return list;
}

std::string range_text(const KeyInfo& key) {
  std::string text = fmt::format("it must be {} to {}", key.least, key.most);
  if (key.step > 1) text += fmt::format(", a multiple of {}", key.step);
  return text;
}

bool in_range(const KeyInfo& key, std::int64_t number) {
  return number >= key.least && number <= key.most && number % key.step == 0;
}

}  // namespace

std::string KeyInfo::full_name() const { return fmt::format("{}.{}", section, name); }

std::span<const KeyInfo> all_keys() {
  static const auto* const keys = new std::vector<KeyInfo>(make_keys());
  return *keys;
}

const KeyInfo& info(Key key) { return all_keys()[static_cast<std::size_t>(key)]; }

std::string wrong_kind(const KeyInfo& key) {
  static constexpr const char* kinds[] = {"true or false", "a whole number", "a text",
                                          "a list of whole numbers", "a list of texts"};
  return fmt::format("it must be {}", kinds[key.standard.index()]);
}

std::string misfit(const KeyInfo& key, const KeyValue& value) {
  if (value.index() != key.standard.index()) {
    return wrong_kind(key);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return in_range(key, *number) ? "" : range_text(key);
  }
  if (const auto* word = std::get_if<std::string>(&value)) {
    const bool fits =
        key.words.empty() || key.words.find(" " + *word + " ") != std::string_view::npos;
    return fits ? ""
                : fmt::format("it must be one of{}", key.words.substr(0, key.words.size() - 1));
  }
  if (const auto* list = std::get_if<Numbers>(&value)) {
    for (const std::int64_t number : *list) {
      if (!in_range(key, number)) return range_text(key);
    }
    if (list->empty()) return "it must not be empty";
  }
  return "";
}

std::string to_string(const KeyValue& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<Numbers>(&value)) {
    return fmt::format("[{}]", fmt::join(*list, ","));
  }
  return fmt::format("[{}]", fmt::join(std::get<Texts>(value), ","));
}

Result<KeyValue> parse_variable(const KeyInfo& key, std::string_view text) {
  KeyValue value;
  if (std::holds_alternative<bool>(key.standard)) {
    auto yes = plan::parse_bool(key.variable, text);
    if (!yes) return yes.error();
    value = *yes;
  } else if (std::holds_alternative<std::int64_t>(key.standard)) {
    if (text == "-1" && key.least == -1) return KeyValue(std::int64_t{-1});
    const auto least = static_cast<std::uint64_t>(std::max<std::int64_t>(0, key.least));
    auto count = plan::parse_count(key.variable, text, least, static_cast<std::uint64_t>(key.most));
    if (!count) return count.error();
    value = static_cast<std::int64_t>(*count);
  } else {
    value = std::string(text);
  }
  if (auto why = misfit(key, value); !why.empty()) {
    return Error{.kind = ErrorKind::invalid_argument,
                 .attempted = fmt::format("set {} to '{}'", key.variable, text),
                 .path = {},
                 .offset = {},
                 .why = std::move(why),
                 .advice = {}};
  }
  return value;
}

}  // namespace straightway::cufile
