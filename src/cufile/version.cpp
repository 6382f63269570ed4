#include "cufile/version.hpp"

#include <array>
#include <filesystem>

#include "os/machine_facts.hpp"
#include "os/system_text.hpp"

namespace straightway::cufile {
namespace {

constexpr int version_otherwise = 1180;  // the last with the smaller statistics
constexpr std::size_t library_limit_bytes = 64 << 20;

// Newest first: the version that brought a name.
struct Brought {
  std::string_view name;
  int version;
};
constexpr std::array<Brought, 6> brought = {{{"cuFileObjectInitialize", 1200},
                                             {"cuFileReadv", 1190},
                                             {"cuFileExportPCIeTopology", 1170},
                                             {"cuFileDriverSetP2PFlags", 1160},
                                             {"cuFileGetStatsL1", 1150},
                                             {"cuFileGetParameterSizeT", 1140}}};

int version_by_exports(const std::string& path) {
  const auto bytes = os::read_text(path, library_limit_bytes);
  if (!bytes) return 0;
  for (const Brought& one : brought) {
    if (bytes->find(std::string(1, '\0') + std::string(one.name) + '\0') != std::string::npos) {
      return one.version;
    }
  }
  return 0;
}

}  // namespace

int parse_version(std::string_view text) {
  const auto first = os::to_number(os::take_field(text, '.'));
  if (!first) return 0;
  if (*first >= 1000 && *first < 100'000 && text.empty()) return static_cast<int>(*first);
  const auto second = os::to_number(os::take_field(text, '.'));
  if (!second || *first == 0 || *first > 9 || *second > 99) return 0;
  return static_cast<int>(*first * 1000 + *second * 10);
}

int library_version(const std::string& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  const std::string name = failed ? path : real.filename().string();
  constexpr std::string_view stem = "libcufile.so.";
  const auto at = name.find(stem);
  const int by_name =
      at == std::string::npos ? 0 : parse_version(std::string_view(name).substr(at + stem.size()));
  return by_name != 0 ? by_name : version_by_exports(path);
}

int answered_version(const Configuration::Environment& environment, const std::string& root) {
  if (const auto text = environment("STRAIGHTWAY_CUFILE_VERSION")) {
    if (const int wanted = parse_version(*text); wanted != 0) return wanted;
  }
  const std::string path =
      os::find_vendor_library(environment("LD_LIBRARY_PATH").value_or(""), root);
  const int installed = path.empty() ? 0 : library_version(path);
  return installed != 0 ? installed : version_otherwise;
}

}  // namespace straightway::cufile
