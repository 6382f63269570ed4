// cufile.json, with any bytes in it: it is refused with its place, or read with every value in
// range.

#include <string>
#include <string_view>

#include "cufile/configuration.hpp"
#include "tests/fuzz/input.hpp"

using namespace straightway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  cufile::Configuration config;
  const auto read = config.read_file(text, "c.json");
  if (!read) {
    fuzz::require(read.error().why.starts_with("c.json:"));
    return 0;
  }
  const auto variable = [&](const char*) -> std::optional<std::string> {
    return std::string(text);
  };
  static_cast<void>(config.read_environment(variable));
  config.remark_effects();
  for (const cufile::KeyInfo& key : cufile::all_keys()) {
    fuzz::require(cufile::misfit(key, config.get(key.key).value).empty());
  }
  for (const cufile::Remark& remark : config.remarks()) fuzz::require(!remark.text().empty());
  static_cast<void>(config.layer());
  return 0;
}
