// contract_tests [--space=host|cuda]: the laws of src/transport/transport.hpp over every transport
// of a space. cuda uses the libcuda.so.1 that the loader finds: a real one, or the tests' fake.

#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "tests/contract/transport_contract.hpp"

namespace straightway::contract {

std::string& chosen_space() {
  static std::string space = "host";
  return space;
}

INSTANTIATE_TEST_SUITE_P(Every, TransportContract, ::testing::ValuesIn(rigs_of(chosen_space())),
                         [](const auto& rig) { return rig.param.name; });

}  // namespace straightway::contract

int main(int argc, char** argv) {
  constexpr std::string_view option = "--space=";
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(option)) {
      argv[kept++] = argv[i];
      continue;
    }
    straightway::contract::chosen_space() = argument.substr(option.size());
  }
  argc = kept;
  argv[argc] = nullptr;
  const auto& space = straightway::contract::chosen_space();
  if (space != "host" && space != "cuda") {
    std::fprintf(stderr, "contract_tests: --space=%s: use host or cuda\n", space.c_str());
    return 2;
  }
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) {
    std::fprintf(stderr, "contract_tests: unknown argument %s\n", argv[1]);
    return 2;
  }
  return RUN_ALL_TESTS();
}
