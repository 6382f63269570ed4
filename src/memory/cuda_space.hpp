#pragma once
// The CUDA space, over the driver API found by dlopen("libcuda.so.1"): no toolkit to build or run.

#include <memory>
#include <string>

#include "memory/space.hpp"

namespace straightway::memory {

struct CudaState {
  bool driver = false;  // the library loads and cuInit succeeded
  std::int32_t devices = 0;
  bool simulated = false;  // the tests' fake driver answers
  bool forked = false;     // cuInit says that the parent process had initialised it
  std::string why_not;     // one sentence part, or empty
};

// Loads the driver and calls cuInit; never fails: state says what is missing. The space is null
// where there is no usable device. Not before the first use of a GPU, and not in a forked child.
struct Cuda {
  CudaState state;
  std::shared_ptr<Space> space;
};
Cuda load_cuda();

// Whether this address could be device memory at all, without loading the driver: false in a
// process that never loaded libcuda (then every pointer is host memory).
bool driver_is_loaded();

}  // namespace straightway::memory
