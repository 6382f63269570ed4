#pragma once
// The vendor's cuFile library of a Context, and what became of it with each storage.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "os/peer_facts.hpp"
#include "straightway/result.hpp"
#include "transport/cufile_library.hpp"

namespace straightway {

// Any thread may call anything at any time.
class VendorWays {
 public:
  explicit VendorWays(std::string root) : root_(std::move(root)) {}

  // Loads it on the first call, which takes long; the outcome stays. Only after cuInit succeeded.
  Result<std::shared_ptr<transport::CufileLibrary>> library(const std::string& path,
                                                            transport::P2pdmaWish wish);
  // Null before that, and where it failed.
  std::shared_ptr<transport::CufileLibrary> loaded();

  // What was learned of transfers with a storage: by which code they were refused (0: none were),
  // and whether the library copied in silence.
  struct Known {
    std::int32_t code = 0;
    bool copies = false;
  };
  Known known(const os::FileStorage& storage);
  void learn_refusal(const os::FileStorage& storage, std::int32_t code);
  void learn_copies(const os::FileStorage& storage);

 private:
  struct Way {
    os::FileStorage storage;
    Known known;
  };
  Known& way(const os::FileStorage& storage);

  const std::string root_;
  std::mutex loading_mutex_;
  std::optional<Result<std::shared_ptr<transport::CufileLibrary>>> outcome_;
  std::mutex mutex_;
  std::vector<Way> ways_;
};

}  // namespace straightway
