// NVIDIA's published example of the two layers, over the stand-in of its library: what cuFile
// counts for 1 GiB that is read through KvikIO's rules.

#include <cstdlib>

#include "tests/api/vendor_fixture.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

class PublishedSequence : public VendorCall {
 protected:
  PublishedSequence() { std::filesystem::resize_file(path, gib); }
  ~PublishedSequence() override {
    for (const char* name : variables) ::unsetenv(name);
  }
  void set(const char* name, const char* value) {
    ::setenv(name, value, 1);
    variables.push_back(name);
  }
  // What the call does to the library's counters, as level 3 of its statistics prints them.
  std::string read(std::uint64_t count, const std::string& counters) {
    OpenOptions open;
    open.door = Door::kvikio;
    begin({}, open);
    const auto target = fake_.allocate(0, count);
    const auto nvfs = cufile.nvfs();
    const auto posix = cufile.posix();
    const auto receipt = file.read_into({reinterpret_cast<void*>(target), count}).value();
    EXPECT_EQ(receipt.moved_bytes, count);
    fake_.release(target);
    EXPECT_EQ(of(receipt.layer.n, receipt.layer.nvfs, receipt.layer.posix), counters);
    const auto plan = file.explain(Direction::read, SpaceKind::cuda, 0, count).value();
    EXPECT_EQ(of(plan.cufile.counters.n, plan.cufile.counters.nvfs, plan.cufile.counters.posix),
              counters);
    return of(cufile.nvfs() - nvfs + cufile.posix() - posix, cufile.nvfs() - nvfs,
              cufile.posix() - posix);
  }
  static std::string of(std::uint64_t n, std::uint64_t nvfs, std::uint64_t posix) {
    return "n=" + std::to_string(n) + " nvfs=" + std::to_string(nvfs) +
           " posix=" + std::to_string(posix);
  }
  std::vector<const char*> variables;
};

constexpr const char* none = "n=0 nvfs=0 posix=0";

TEST_F(PublishedSequence, TasksOf4MiBAre256DirectReads) {
  EXPECT_EQ(read(gib, "n=256 nvfs=256 posix=0"), "n=256 nvfs=256 posix=0");
}

TEST_F(PublishedSequence, ForcedCompatCountsThemAsPosixWithoutTheVendorsLibrary) {
  set("CUFILE_FORCE_COMPAT_MODE", "true");
  set("KVIKIO_COMPAT_MODE", "off");
  EXPECT_EQ(read(gib, "n=256 nvfs=0 posix=256"), none);
}

TEST_F(PublishedSequence, WithTheFrontLayersCompatModeCufileSeesNothing) {
  set("KVIKIO_COMPAT_MODE", "on");
  EXPECT_EQ(read(gib, none), none);
}

TEST_F(PublishedSequence, OneTaskOf1GiBIsFourPartsOf256MiB) {
  set("KVIKIO_TASK_SIZE", "1073741824");
  EXPECT_EQ(read(gib, "n=4 nvfs=4 posix=0"), "n=4 nvfs=4 posix=0");
  EXPECT_EQ(cufile.calls(), 4U);
}

TEST_F(PublishedSequence, OneTaskOf16MiBIsTwoPartsOf8MiB) {
  set("KVIKIO_TASK_SIZE", "1073741824");
  EXPECT_EQ(read(16 << 20, "n=2 nvfs=2 posix=0"), "n=2 nvfs=2 posix=0");
  EXPECT_EQ(cufile.largest_call(), std::uint64_t{8} << 20);
}

}  // namespace
}  // namespace straightway
