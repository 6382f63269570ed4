#include "os/cufile_codes.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace straightway::os {
namespace {

struct Row {
  int code;
  CodeText text;
};

constexpr std::string_view check_arguments = "check the arguments of the call";
constexpr std::string_view see_log = "set CUFILE_LOGFILE_PATH and read there what happened";
constexpr std::string_view see_dmesg = "look at the kernel's log, and at `straightway check`";

constexpr std::array<Row, 49> rows = {{
    {0, {"CU_FILE_SUCCESS", "it worked", "nothing"}},
    {5001, {"CU_FILE_DRIVER_NOT_INITIALIZED", "the driver is not open", "call cuFileDriverOpen"}},
    {5002,
     {"CU_FILE_DRIVER_INVALID_PROPS", "the configuration makes no sense",
      "correct cufile.json or the variable; the log names the place"}},
    {5003,
     {"CU_FILE_DRIVER_UNSUPPORTED_LIMIT", "the value is beyond its limit",
      "ask cuFileGetParameterMinMaxValue"}},
    {5004,
     {"CU_FILE_DRIVER_VERSION_MISMATCH", "nvidia-fs and library do not fit",
      "install an nvidia-fs that fits the library"}},
    {5005,
     {"CU_FILE_DRIVER_VERSION_READ_ERROR", "the version of nvidia-fs cannot be read", see_dmesg}},
    {5006, {"CU_FILE_DRIVER_CLOSING", "the driver is closed or closing", "open it first"}},
    {5007,
     {"CU_FILE_PLATFORM_NOT_SUPPORTED", "this platform is not supported",
      "see `straightway check`"}},
    {5008,
     {"CU_FILE_IO_NOT_SUPPORTED", "this file cannot be used that way",
      "set allow_compat_mode, or see `straightway check FILE`"}},
    {5009, {"CU_FILE_DEVICE_NOT_SUPPORTED", "this GPU is not supported", "use another GPU"}},
    {5010, {"CU_FILE_NVFS_DRIVER_ERROR", "nvidia-fs failed", see_dmesg}},
    {5011,
     {"CU_FILE_CUDA_DRIVER_ERROR", "the CUDA driver failed",
      "look at the CUDA code that comes with it"}},
    {5012, {"CU_FILE_CUDA_POINTER_INVALID", "the pointer is no memory", check_arguments}},
    {5013,
     {"CU_FILE_CUDA_MEMORY_TYPE_INVALID", "this kind of memory cannot be used",
      "use memory of cudaMalloc or host memory; allow_system_memory must be true for that"}},
    {5014,
     {"CU_FILE_CUDA_POINTER_RANGE_ERROR", "the range ends behind its allocation",
      "give a smaller size"}},
    {5015,
     {"CU_FILE_CUDA_CONTEXT_MISMATCH", "the memory belongs to another context",
      "make the context of the memory current"}},
    {5016,
     {"CU_FILE_INVALID_MAPPING_SIZE", "more would be registered than may be pinned",
      "deregister buffers, or raise max_device_pinned_mem_size_kb"}},
    {5017,
     {"CU_FILE_INVALID_MAPPING_RANGE", "the range ends behind what was registered",
      check_arguments}},
    {5018,
     {"CU_FILE_INVALID_FILE_TYPE", "this is no regular file or block device",
      "open a regular file"}},
    {5019,
     {"CU_FILE_INVALID_FILE_OPEN_FLAG", "the file was opened with flags that do not fit",
      "open it for this direction, and without O_APPEND, O_NONBLOCK, O_TMPFILE"}},
    {5020, {"CU_FILE_DIO_NOT_SET", "the file was opened without O_DIRECT", "open it with it"}},
    {5022, {"CU_FILE_INVALID_VALUE", "an argument makes no sense", check_arguments}},
    {5023,
     {"CU_FILE_MEMORY_ALREADY_REGISTERED", "the buffer is registered already", "register it once"}},
    {5024,
     {"CU_FILE_MEMORY_NOT_REGISTERED", "the buffer is not registered",
      "give the address that was registered"}},
    {5025, {"CU_FILE_PERMISSION_DENIED", "the system refuses it", "check the permissions"}},
    {5026,
     {"CU_FILE_DRIVER_ALREADY_OPEN", "the driver is open already",
      "set parameters before the first use"}},
    {5027,
     {"CU_FILE_HANDLE_NOT_REGISTERED", "the handle is not registered (any more)",
      "register the file after the driver was opened"}},
    {5028,
     {"CU_FILE_HANDLE_ALREADY_REGISTERED", "the descriptor is registered already",
      "deregister it before it is closed"}},
    {5029, {"CU_FILE_DEVICE_NOT_FOUND", "there is no such GPU", "see `straightway check`"}},
    {5030, {"CU_FILE_INTERNAL_ERROR", "it failed inside, or an offset is negative", see_log}},
    {5031, {"CU_FILE_GETNEWFD_FAILED", "no more files can be opened", "raise `ulimit -n`"}},
    {5033, {"CU_FILE_NVFS_SETUP_ERROR", "nvidia-fs cannot be set up", see_dmesg}},
    {5034, {"CU_FILE_IO_DISABLED", "this direction is switched off", "see cufile.json"}},
    {5035,
     {"CU_FILE_BATCH_SUBMIT_FAILED", "an entry of the batch makes no sense", check_arguments}},
    {5036,
     {"CU_FILE_GPU_MEMORY_PINNING_FAILED", "the GPU's memory cannot be pinned",
      "register less, or see the size of BAR1"}},
    {5037, {"CU_FILE_BATCH_FULL", "the batch is full", "collect events first"}},
    {5038,
     {"CU_FILE_ASYNC_NOT_SUPPORTED", "streams cannot be used here",
      "set parallel_io and max_io_threads; submit outside a graph capture"}},
    {5039, {"CU_FILE_INTERNAL_BATCH_SETUP_ERROR", "the batch cannot be set up", see_log}},
    {5040,
     {"CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR", "the batch cannot be submitted", check_arguments}},
    {5041,
     {"CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR", "the batch cannot be asked", check_arguments}},
    {5042,
     {"CU_FILE_INTERNAL_BATCH_CANCEL_ERROR", "the batch cannot be cancelled", check_arguments}},
    {5043, {"CU_FILE_NOMEM_ERROR", "there is no memory left", "free some"}},
    {5044, {"CU_FILE_IO_ERROR", "the transfer failed", "check the drive, and the kernel's log"}},
    {5045, {"CU_FILE_INTERNAL_BUF_REGISTER_ERROR", "the buffer cannot be registered", see_log}},
    {5046, {"CU_FILE_HASH_OPR_ERROR", "it failed inside", see_log}},
    {5047, {"CU_FILE_INVALID_CONTEXT_ERROR", "there is no such batch (any more)", check_arguments}},
    {5048, {"CU_FILE_NVFS_INTERNAL_DRIVER_ERROR", "nvidia-fs failed inside", see_dmesg}},
    {5049,
     {"CU_FILE_BATCH_NOCOMPAT_ERROR", "batches need a direct path there", "set allow_compat_mode"}},
    {5050, {"CU_FILE_IO_MAX_ERROR", "it is larger than may be moved at once", "split the request"}},
}};

}  // namespace

CodeText describe_cufile(int code) {
  const auto wanted = std::abs(std::int64_t{code});
  for (const Row& row : rows) {
    if (row.code == wanted) return row.text;
  }
  return {};
}

std::string cufile_text(int code) {
  const auto text = describe_cufile(code);
  std::string number = "cuFile code " + std::to_string(std::abs(std::int64_t{code}));
  if (text.name.empty()) return number;
  return number + ", " + std::string(text.name) + ": " + std::string(text.meaning);
}

}  // namespace straightway::os
