#pragma once
// A file of some pages, a GPU to read it into, and a sink that counts warnings.

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "straightway/file.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"

namespace straightway::tests {

class PinTest : public memory::Gpu {
 protected:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t file_bytes = (2 << 20) + 321;

  PinTest() : bytes(pattern(file_bytes)), path(folder.write("a", bytes)) { make_context({}); }
  void make_context(ContextOptions options) {
    options.pinned_bytes = 8 << 20;  // a ring that is whole from the start, and one desk
    options.on_warning = [this](std::string_view text) {
      ++warnings;
      warning = text;
    };
    context = std::move(Context::create(options)).value();
  }
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    device = user_memory(file_bytes + page);
    warm();
  }
  // Opens all that reads take, so that what is pinned from here on is the file's.
  void warm() {
    const auto file = open();
    PinOptions first;
    first.ranges = {{0, page}};
    for (const auto policy : {Policy::automatic, Policy::staged}) {
      const auto pin = file.pin(first);
      ASSERT_TRUE(pin) << pin.error().message();
      CallOptions options;
      options.policy = policy;
      ASSERT_TRUE(file.read_into(at(device, page), options));
      const auto job = file.submit_read(at(device, file_bytes), options);
      ASSERT_TRUE(job && job->result());
    }
    wipe();
    before = fake_.pinned_bytes();
  }
  void wipe() {
    const std::vector<unsigned char> x(file_bytes + page, 'x');
    fake_.write(device, x.data(), x.size());
  }
  File open(const std::string& name, std::string_view mode = "r") {
    return std::move(File::open(name, mode, {}, context)).value();
  }
  File open() { return open(path); }
  static Memory at(std::uint64_t address, std::uint64_t size) {
    return {reinterpret_cast<void*>(address), size};
  }
  static std::vector<char> bytes_of(const File& file) {
    std::vector<char> now(file_bytes);
    const auto got = ::pread(file.descriptor(), now.data(), now.size(), 0);
    now.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return now;
  }
  std::vector<char> device_chars(std::size_t size) { return Gpu::device_chars(device, size); }
  // Reads all, and compares with what the file has now.
  Receipt read_right(const File& file) {
    wipe();
    const auto receipt = file.read_into(at(device, file_bytes));
    EXPECT_TRUE(receipt) << receipt.error().message();
    if (!receipt) return {};
    const auto want = bytes_of(file);
    EXPECT_EQ(receipt->moved_bytes, want.size());
    EXPECT_TRUE(device_chars(want.size()) == want);
    return *receipt;
  }
  std::uint64_t held_bytes() { return fake_.pinned_bytes() - before; }
  static std::uint64_t moved(const Receipt& receipt, Route route) {
    return receipt.routes[index(route)].bytes;
  }

  TempFolder folder;
  std::vector<char> bytes;
  std::string path;
  std::shared_ptr<Context> context;
  memory::cuda::DevicePointer device = 0;
  std::uint64_t before = 0;  // pinned, before the test
  std::atomic<int> warnings{0};
  std::string warning;
};

}  // namespace straightway::tests
