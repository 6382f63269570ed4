#include "cufile/gds_stats.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace straightway::cufile {
namespace {

constexpr std::size_t shown_buckets = abi::histogram_size / 2;

double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1U << 30); }
std::uint64_t mib(std::uint64_t bytes) { return bytes >> 20; }

struct NamedCounter {
  const char* name;
  abi::Counter abi::Level1::* counter;
};
constexpr std::array<NamedCounter, 15> counters_shown = {
    {{"Read", &abi::Level1::read},
     {"Write", &abi::Level1::write},
     {"HandleRegister", &abi::Level1::handle_register},
     {"HandleDeregister", &abi::Level1::handle_deregister},
     {"BufRegister", &abi::Level1::buffer_register},
     {"BufDeregister", &abi::Level1::buffer_deregister},
     {"BatchSubmit", &abi::Level1::batch_submit},
     {"BatchComplete", &abi::Level1::batch_complete},
     {"BatchSetup", &abi::Level1::batch_setup},
     {"BatchCancel", &abi::Level1::batch_cancel},
     {"BatchDestroy", &abi::Level1::batch_destroy},
     {"BatchEnqueued", &abi::Level1::batch_enqueued},
     {"PosixBatchEnqueued", &abi::Level1::batch_posix_enqueued},
     {"BatchProcessed", &abi::Level1::batch_processed},
     {"PosixBatchProcessed", &abi::Level1::batch_posix_processed}}};

std::string global_text(const abi::Level1& all) {
  std::string text = "cuFile STATS VERSION : 8\nGLOBAL STATS:\n";
  for (const auto& [name, counter] : counters_shown) {
    text += fmt::format("{}: ok = {} err = {}\n", name, (all.*counter).ok, (all.*counter).err);
  }
  text += fmt::format("Total Read Size (MiB): {}\n", mib(all.read_bytes));
  text += fmt::format("Read BandWidth (GiB/s): {:g}\n", gib(all.read_bytes_per_s));
  text += fmt::format("Avg Read Latency (us): {}\n", all.read_latency_avg_us);
  text += fmt::format("Total Write Size (MiB): {}\n", mib(all.write_bytes));
  text += fmt::format("Write BandWidth (GiB/s): {:g}\n", gib(all.write_bytes_per_s));
  text += fmt::format("Avg Write Latency (us): {}\n", all.write_latency_avg_us);
  text += fmt::format("Total Batch Read Size (MiB): {}\n", mib(all.batch_read_bytes));
  text += fmt::format("Total Batch Write Size (MiB): {}\n", mib(all.batch_write_bytes));
  text += fmt::format("Batch Read BandWidth (GiB/s): {:g}\n", gib(all.batch_read_bytes_per_s));
  text += fmt::format("Batch Write BandWidth (GiB/s): {:g}\n", gib(all.batch_write_bytes_per_s));
  text += fmt::format("Avg Batch Submit Latency (us): {}\n", all.batch_submit_latency_avg_us);
  text += fmt::format("Avg Batch Completion Latency (us): {}\n", all.batch_complete_latency_avg_us);
  return text;
}

// "0-4(KiB): 7 0", "4-8(KiB): ..." to "65536-...(KiB): ..."
std::string histogram_text(const Published& counters) {
  std::string text = "READ-WRITE SIZE HISTOGRAM :\n";
  for (std::size_t i = 0; i < shown_buckets; ++i) {
    const std::uint64_t end_kib = std::uint64_t{4} << i;
    const std::string end = i + 1 < shown_buckets ? std::to_string(end_kib) : "...";
    text += fmt::format("{}-{}(KiB): {} {}\n", i == 0 ? 0 : end_kib / 2, end,
                        counters.read_sizes[i], counters.write_sizes[i]);
  }
  return text;
}

std::string direction_text(const char* name, const abi::GpuDirection& moved) {
  return fmt::format("{}: bw={:g} util(%)={} n={} pcie p2pdma={} nvfs={} posix={} unalign={} dr={}",
                     name, gib(moved.bytes_per_s), moved.utilization, moved.n, moved.p2pdma,
                     moved.nvfs, moved.posix, moved.unaligned, moved.dr);
}

std::string gpu_text(std::size_t index, const abi::PerGpu& gpu) {
  std::string text = fmt::format("GPU {}(UUID: ", index);
  for (const char byte : gpu.uuid) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  text +=
      fmt::format(") {} r_sparse={} r_inline={} err={} MiB={}", direction_text("Read", gpu.read),
                  gpu.sparse_regions, gpu.inline_regions, gpu.read_errors, mib(gpu.read.bytes));
  text += fmt::format(" {} err={} MiB={}", direction_text("Write", gpu.write), gpu.write_errors,
                      mib(gpu.write.bytes));
  return text + fmt::format(" BufRegister: n={} err={} free={} MiB={}\n", gpu.mapped,
                            gpu.mapped_err, gpu.mapped_free, mib(gpu.registered_bytes));
}

// This library has no pools of bounce buffers and no memory regions of RDMA. Of the queue of a GPU
// it counts what the documented one is given, and has no work under way there.
std::string gpus_text(const Published& counters) {
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(counters.gpu_count, counters.gpus.size()));
  std::string text = "PER_GPU STATS:\n";
  for (std::size_t i = 0; i < count; ++i) text += gpu_text(i, counters.gpus[i]);
  text +=
      "PER_GPU POOL BUFFER STATS:\nPER_GPU POSIX POOL BUFFER STATS:\nPER_GPU RDMA STATS:\n"
      "RDMA MRSTATS:\npeer name  nr_mrs  mr_size(MiB)\nPER GPU THREAD POOL STATS:\n";
  for (std::size_t i = 0; i < count; ++i) {
    text += fmt::format(
        "gpu node: {} enqueues:{} completes:{} pending suspends:0 pending yields:0 active:0 "
        "suspends:0\n",
        i, counters.pooled_parts[i], counters.pooled_parts[i]);
  }
  return text;
}

}  // namespace

std::string gds_stats_text(const Published& counters, int level) {
  std::string text = global_text(counters.level1);
  if (level >= 2) text += histogram_text(counters);
  if (level >= 3) text += gpus_text(counters);
  return text;
}

}  // namespace straightway::cufile
