#pragma once
// The cuFileSetParameter and cuFileGetParameter families: values staged while the driver is closed,
// which count at the next open, and the running ones after it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cufile/abi.hpp"
#include "cufile/configuration.hpp"

namespace straightway::cufile {

struct Slabs {
  std::vector<std::size_t> sizes_kb;
  std::vector<std::size_t> counts;
};
enum class Pool : std::uint8_t { posix, gpu };

// What was set before the open. Any value is taken; those that do not fit are dropped at the open.
struct Staged {
  std::array<std::optional<std::size_t>, abi::size_parameter_count> sizes;
  std::array<std::optional<bool>, abi::bool_parameter_count> bools;
  std::array<std::optional<std::string>, abi::string_parameter_count> texts;
  std::array<std::optional<Slabs>, 2> slabs;  // by Pool

  abi::Code set_size(int parameter, std::size_t value);
  abi::Code set_bool(int parameter, bool value);
  abi::Code set_text(int parameter, const char* value);
  abi::Code set_slabs(Pool pool, const std::size_t* sizes_kb, const std::size_t* counts, int count);

  // As a configuration at the API's rank, with a remark for each value that was dropped.
  Configuration configuration(std::vector<Remark>& remarks) const;
};

// running: null while the driver is closed. Outputs are untouched where the answer is no success.
abi::Code get_size(int parameter, const Staged& staged, const Configuration* running,
                   std::size_t* value);
abi::Code get_bool(int parameter, const Staged& staged, const Configuration* running, bool* value);
abi::Code get_text(int parameter, const Staged& staged, const Configuration* running, char* text,
                   int text_bytes);
abi::Code get_slabs(Pool pool, const Staged& staged, const Configuration* running,
                    std::size_t* sizes_kb, std::size_t* counts, int count);
abi::Code get_range(int parameter, std::size_t* least, std::size_t* most);

}  // namespace straightway::cufile
