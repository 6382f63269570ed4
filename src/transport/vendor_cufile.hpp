#pragma once
// Segments between files and device memory by the vendor's cuFile library, on the thread that
// submits them: each is complete when submit returns. The adaptor `threaded` runs several at once.
//
// Memory is registered for the length of one call: nvidia-fs has one transfer at a time under way
// in each registration, and nothing stays pinned behind the caller's back.

#include <memory>
#include <vector>

#include "memory/space.hpp"
#include "transport/cufile_library.hpp"
#include "transport/transport.hpp"

namespace straightway::transport {

class VendorCufile final : public Transport {
 public:
  VendorCufile(std::shared_ptr<CufileLibrary> library, std::shared_ptr<memory::Space> space,
               std::int32_t device);
  const Capabilities& capabilities() const override { return capabilities_; }
  // The file must be registered: FileRef::cufile.
  Result<Attachment> attach(const FileRef& file) override;
  Result<Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  Completion move(const Segment& segment);
  std::int64_t move_in_chunks(const Segment& segment);
  std::int64_t move_chunk(const Segment& segment, std::uint64_t done, std::uint64_t& wanted);

  const std::shared_ptr<CufileLibrary> library_;
  const std::shared_ptr<memory::Space> space_;
  const std::int32_t device_;
  Capabilities capabilities_;
  std::vector<Completion> done_;
};

}  // namespace straightway::transport
