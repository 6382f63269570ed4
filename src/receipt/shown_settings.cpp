#include "receipt/shown_settings.hpp"

#include <type_traits>

namespace straightway::receipt {
namespace {

template <class T>
ShownSetting show(const char* layer, const char* name, const Setting<T>& setting) {
  if constexpr (std::is_enum_v<T>) {
    return {layer, name, std::string(to_string(setting.value)), setting.origin};
  } else {
    return {layer, name, setting.value, setting.origin};
  }
}

void add_front(std::vector<ShownSetting>& list, const FrontSettings& front) {
  list.push_back(show("front", "compat_mode", front.compat_mode));
  list.push_back(show("front", "threads", front.threads));
  list.push_back(show("front", "task_size_bytes", front.task_size_bytes));
  list.push_back(show("front", "gds_threshold_bytes", front.gds_threshold_bytes));
}

void add_cufile(std::vector<ShownSetting>& list, const CufileSettings& cufile) {
  list.push_back(show("cufile", "parallel_io", cufile.parallel_io));
  list.push_back(show("cufile", "max_io_threads", cufile.max_io_threads));
  list.push_back(show("cufile", "max_io_queue_depth", cufile.max_io_queue_depth));
  list.push_back(show("cufile", "min_io_threshold_size_kb", cufile.min_io_threshold_size_kb));
  list.push_back(show("cufile", "max_request_parallelism", cufile.max_request_parallelism));
  list.push_back(show("cufile", "max_direct_io_size_kb", cufile.max_direct_io_size_kb));
  list.push_back(show("cufile", "allow_compat_mode", cufile.allow_compat_mode));
  list.push_back(show("cufile", "force_compat_mode", cufile.force_compat_mode));
  list.push_back(show("cufile", "use_pci_p2pdma", cufile.use_pci_p2pdma));
}

}  // namespace

std::vector<ShownSetting> shown_settings(const Settings& settings, Door door) {
  std::vector<ShownSetting> list = {show("", "policy", settings.policy),
                                    show("", "cache", settings.cache),
                                    show("", "evidence", settings.evidence),
                                    show("", "threads", settings.threads),
                                    show("", "pinned_bytes", settings.pinned_bytes),
                                    show("", "pin_bytes", settings.pin_bytes),
                                    show("", "ledger", settings.ledger),
                                    show("", "vendor_library", settings.vendor_library)};
  if (door == Door::kvikio) add_front(list, settings.front);
  if (door != Door::straightway) add_cufile(list, settings.cufile);
  return list;
}

}  // namespace straightway::receipt
