#pragma once
// Receipts that several tests look at.

#include <memory>

#include "straightway/receipt.hpp"

namespace straightway::receipt_tests {

inline std::shared_ptr<FileFacts> virtio_file() {
  auto file = std::make_shared<FileFacts>();
  file->path = "a.bin";
  file->filesystem = "ext4";
  file->device = "/dev/vda";
  file->device_driver = "virtio-blk";
  file->direct_offset_align_bytes = 512;
  file->direct_memory_align_bytes = 512;
  return file;
}

// 1 GiB from the page cache into a GPU.
inline Receipt staged_read() {
  Receipt receipt;
  receipt.memory = {SpaceKind::cuda, 0, 0x7f0000000000, std::uint64_t{1} << 30};
  receipt.wanted_bytes = std::uint64_t{1} << 30;
  receipt.moved_bytes = std::uint64_t{1} << 30;
  receipt.routes[index(Route::staged)] = {
      std::uint64_t{1} << 30,
      1024,
      Reason::device_memory,
      {EvidenceKind::observed, Witness::own_copy, Scope::request}};
  receipt.refused[index(Route::nvfs)] = Reason::nvfs_not_loaded;
  receipt.refused[index(Route::p2pdma)] = Reason::no_peer_memory;
  receipt.refused[index(Route::direct_host)] = Reason::space_is_device;
  receipt.refused[index(Route::buffered)] = Reason::space_is_device;
  receipt.disk_measured = true;
  receipt.threads = 10;
  receipt.pinned_bytes = std::uint64_t{64} << 20;
  receipt.times = {1'000, 2'000, 500'000, 20'101'000};
  receipt.file = virtio_file();
  receipt.machine = std::make_shared<MachineFacts>();
  receipt.settings = std::make_shared<Settings>();
  return receipt;
}

// 4 KiB into host memory on the caller's thread, too small to be watched.
inline Receipt small_read() {
  Receipt receipt;
  receipt.memory = {SpaceKind::host, -1, 0x1000, 4096};
  receipt.wanted_bytes = 4096;
  receipt.moved_bytes = 4096;
  receipt.routes[index(Route::buffered)] = {
      4096, 1, Reason::host_memory, {EvidenceKind::observed, Witness::own_copy, Scope::request}};
  receipt.refused[index(Route::nvfs)] = Reason::space_is_host;
  receipt.threads = 1;
  receipt.times = {1'000, 1'000, 0, 3'000};
  receipt.file = virtio_file();
  receipt.settings = std::make_shared<Settings>();
  return receipt;
}

}  // namespace straightway::receipt_tests
