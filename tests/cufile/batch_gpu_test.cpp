// Batches, through the exported functions, on the simulated GPU.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "tests/cufile/library.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t KiB = 1024;

class Batches : public CufileGpuTest {
 protected:
  Batches() : bytes(tests::pattern(8192 * KiB)), path(folder.write("data", bytes)) {}
  void SetUp() override {
    CufileGpuTest::SetUp();
    ASSERT_EQ(library.cuFileDriverOpen().code, 0);
    file = register_fd(open_file(path));
    device = static_cast<char*>(device_memory(8192 * KiB));
  }

  void* set_up(unsigned capacity) {
    void* batch = nullptr;
    EXPECT_EQ(library.cuFileBatchIOSetUp(&batch, capacity).code, 0);
    return batch;
  }
  abi::BatchEntry entry(std::size_t index, std::size_t size, int opcode = abi::opcode_read) {
    const auto offset = static_cast<off_t>(index * size);
    return {abi::batch_mode,
            device,
            offset,
            offset,
            size,
            file,
            opcode,
            reinterpret_cast<void*>(index + 1)};
  }
  int submit(void* batch, std::vector<abi::BatchEntry> entries) {
    return library
        .cuFileBatchIOSubmit(batch, static_cast<unsigned>(entries.size()), entries.data(), 0)
        .code;
  }
  // By cookie.
  std::map<std::uintptr_t, abi::BatchEvent> collect(void* batch, unsigned least, unsigned most) {
    std::vector<abi::BatchEvent> events(most);
    unsigned count = most;
    EXPECT_EQ(library.cuFileBatchIOGetStatus(batch, least, &count, events.data(), nullptr).code, 0);
    std::map<std::uintptr_t, abi::BatchEvent> by_cookie;
    for (unsigned i = 0; i < count; ++i) {
      by_cookie[reinterpret_cast<std::uintptr_t>(events[i].cookie)] = events[i];
    }
    EXPECT_EQ(by_cookie.size(), count);
    return by_cookie;
  }

  std::vector<char> bytes;
  std::string path;
  void* file = nullptr;
  char* device = nullptr;
};

TEST_F(Batches, AsManyEntriesAsThereAreAllowedAtOnce) {
  void* batch = set_up(128);
  std::vector<abi::BatchEntry> entries;
  entries.reserve(64);
  for (std::size_t i = 0; i < 64; ++i) entries.push_back(entry(i, 128 * KiB));
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(submit(batch, entries), 0);
    const auto events = collect(batch, 64, 64);
    ASSERT_EQ(events.size(), 64U);
    for (const auto& [cookie, event] : events) {
      EXPECT_EQ(event.status, abi::complete);
      EXPECT_EQ(event.result, 128 * KiB);
    }
    EXPECT_EQ(device_bytes(device, bytes.size()), bytes);
  }
  library.cuFileBatchIODestroy(batch);
}

TEST_F(Batches, SetUpsHaveTheirLimits) {
  void* batch = nullptr;
  EXPECT_EQ(library.cuFileBatchIOSetUp(&batch, 0).code, 5022);
  EXPECT_EQ(library.cuFileBatchIOSetUp(&batch, 129).code, 5022);
  EXPECT_EQ(library.cuFileBatchIOSetUp(nullptr, 1).code, 5022);
  EXPECT_EQ(batch, nullptr);
  for (int i = 0; i < 500; ++i) set_up(128);
  library.cuFileDriverClose_v2();
  EXPECT_EQ(library.cuFileBatchIOSetUp(&batch, 1).code, 5022);  // closed
}

TEST_F(Batches, OneBadEntryRefusesAll) {
  void* batch = set_up(8);
  ASSERT_EQ(library.cuFileBufRegister(device, 1024 * KiB, 0).code, 0);
  const auto code_with = [&](auto change) {
    abi::BatchEntry bad = entry(1, 4 * KiB);
    change(bad);
    return submit(batch, {entry(0, 4 * KiB), bad});
  };
  EXPECT_EQ(code_with([](auto& e) { e.handle = nullptr; }), 5027);
  EXPECT_EQ(code_with([](auto& e) { e.file_offset = -1; }), 5022);
  EXPECT_EQ(code_with([](auto& e) { e.memory_offset = -1; }), 5022);
  EXPECT_EQ(code_with([](auto& e) { e.memory = nullptr; }), 5022);
  EXPECT_EQ(code_with([](auto& e) { e.mode = 99; }), 5035);
  EXPECT_EQ(code_with([](auto& e) { e.opcode = 2; }), 5022);
  EXPECT_EQ(code_with([](auto& e) { e.size = 2048 * KiB; }), 5017);
  void* reader = register_fd(open_file(path, O_RDONLY));
  EXPECT_EQ(code_with([&](auto& e) { e.handle = reader, e.opcode = abi::opcode_write; }), 5019);
  unsigned count = 4;
  abi::BatchEvent events[4];
  EXPECT_EQ(library.cuFileBatchIOGetStatus(batch, 1, &count, events, nullptr).code, 0);
  EXPECT_EQ(count, 0U);  // nothing ran, and nothing is waited for
}

TEST_F(Batches, BadCallsAnswerTheMeasuredCodes) {
  void* batch = set_up(2);
  abi::BatchEntry one = entry(0, 4 * KiB);
  abi::BatchEvent event{};
  unsigned count = 1;
  void* garbage = reinterpret_cast<void*>(0x77);
  EXPECT_EQ(library.cuFileBatchIOSubmit(batch, 0, &one, 0).code, 5040);
  EXPECT_EQ(library.cuFileBatchIOSubmit(batch, 1, nullptr, 0).code, 5040);
  EXPECT_EQ(submit(batch, {one, one, one}), 5040);
  EXPECT_EQ(submit(nullptr, {one}), 5047);
  EXPECT_EQ(submit(garbage, {one}), 5047);
  EXPECT_EQ(library.cuFileBatchIOGetStatus(garbage, 1, &count, &event, nullptr).code, 5047);
  EXPECT_EQ(library.cuFileBatchIOGetStatus(batch, 1, nullptr, &event, nullptr).code, 5022);
  EXPECT_EQ(library.cuFileBatchIOGetStatus(batch, 1, &count, nullptr, nullptr).code, 5022);
  EXPECT_EQ(library.cuFileBatchIOGetStatus(batch, 2, &count, &event, nullptr).code, 5022);
  count = 0;
  EXPECT_EQ(library.cuFileBatchIOGetStatus(batch, 0, &count, &event, nullptr).code, 5022);
  EXPECT_EQ(library.cuFileBatchIOCancel(garbage).code, 5047);
  library.cuFileBatchIODestroy(garbage);
  library.cuFileBatchIODestroy(nullptr);
  library.cuFileBatchIODestroy(batch);
  library.cuFileBatchIODestroy(batch);
  EXPECT_EQ(submit(batch, {one}), 5047);
}

TEST_F(Batches, NoEventIsLost) {
  void* batch = set_up(8);
  for (std::size_t i = 0; i < 40; ++i) {
    while (submit(batch, {entry(i, 4 * KiB)}) == 5037) {  // eight under way
    }
  }
  std::size_t seen = 0;
  while (seen < 40) seen += collect(batch, 1, 7).size();
  EXPECT_EQ(seen, 40U);
  EXPECT_EQ(collect(batch, 1, 7).size(), 0U);
}

TEST_F(Batches, AFullBatchIsRefused) {
  void* batch = set_up(2);
  fake.hold(1);
  ASSERT_EQ(submit(batch, {entry(0, 4 * KiB), entry(1, 4 * KiB)}), 0);
  EXPECT_EQ(submit(batch, {entry(2, 4 * KiB)}), 5037);
  timespec none{};
  unsigned count = 2;
  abi::BatchEvent events[2];
  EXPECT_EQ(library.cuFileBatchIOGetStatus(batch, 1, &count, events, &none).code, 0);
  EXPECT_EQ(count, 0U);
  fake.hold(0);
  EXPECT_EQ(collect(batch, 2, 2).size(), 2U);
}

TEST_F(Batches, ShortEmptyAndUnalignedEntriesHaveTheirResults) {
  void* batch = set_up(8);
  std::vector<char> host(5000);
  abi::BatchEntry end = entry(0, 4 * KiB);
  end.file_offset = static_cast<off_t>(bytes.size()) - 100;
  abi::BatchEntry past = entry(1, 4 * KiB);
  past.file_offset = 1 << 30;
  abi::BatchEntry empty = entry(2, 0);
  abi::BatchEntry odd = entry(3, 777);
  abi::BatchEntry on_host = entry(4, 5000);
  on_host.memory = host.data();
  on_host.memory_offset = 0;
  ASSERT_EQ(submit(batch, {end, past, empty, odd, on_host}), 0);
  const auto events = collect(batch, 5, 8);
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events.at(1).result, 100U);
  EXPECT_EQ(events.at(2).result, 0U);
  EXPECT_EQ(events.at(3).result, 0U);  // the vendor's gives it no event
  EXPECT_EQ(events.at(4).result, 777U);
  EXPECT_EQ(events.at(5).result, 5000U);
  EXPECT_TRUE(std::equal(host.begin(), host.end(), bytes.begin() + 20'000));
}

// D10: reads and writes of one range in one batch are done in their order.
TEST_F(Batches, D10_EntriesThatDependAreDoneInOrder) {
  void* batch = set_up(64);
  const std::size_t size = 256 * KiB;
  for (int round = 0; round < 10; ++round) {
    const auto fresh = tests::pattern(size, 100 + static_cast<std::uint64_t>(round));
    fill_device(device, fresh);
    abi::BatchEntry write = entry(0, size, abi::opcode_write);
    abi::BatchEntry read = entry(1, size);
    read.file_offset = 0;  // what the first has written ...
    abi::BatchEntry copy = entry(2, size, abi::opcode_write);
    copy.memory_offset = read.memory_offset;  // ... written elsewhere by the third
    ASSERT_EQ(submit(batch, {write, read, copy}), 0);
    ASSERT_EQ(collect(batch, 3, 3).size(), 3U);
    EXPECT_EQ(device_bytes(device + size, size), fresh);
    const auto after = folder.read("data");
    EXPECT_TRUE(std::equal(fresh.begin(), fresh.end(), after.begin() + 2 * size));
  }
}

TEST_F(Batches, CancelGivesEachEntryItsEvent) {
  void* batch = set_up(4);
  fake.hold(1);
  abi::BatchEntry first = entry(0, 64 * KiB);
  abi::BatchEntry dependent = first;
  dependent.cookie = reinterpret_cast<void*>(9);
  ASSERT_EQ(submit(batch, {first, dependent}), 0);
  EXPECT_EQ(library.cuFileBatchIOCancel(batch).code, 0);
  fake.hold(0);
  const auto events = collect(batch, 2, 4);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events.at(9).status, abi::canceled);
  ASSERT_EQ(submit(batch, {first}), 0);  // the handle stays usable
  EXPECT_EQ(collect(batch, 1, 1).begin()->second.status, abi::complete);
}

TEST_F(Batches, DestroyAndCloseWithTransfersUnderWay) {
  for (int round = 0; round < 5; ++round) {
    void* batch = set_up(32);
    std::vector<abi::BatchEntry> entries;
    entries.reserve(32);
    for (std::size_t i = 0; i < 32; ++i) entries.push_back(entry(i, 128 * KiB));
    ASSERT_EQ(submit(batch, entries), 0);
    if (round < 4) library.cuFileBatchIODestroy(batch);
  }
  library.cuFileDriverClose_v2();
}

// What the parent has in flight never ends in the child: to wait for it would be for ever.
TEST_F(Batches, AChildDoesNotWaitForItsParentsEntries) {
  void* batch = set_up(4);
  fake.hold(1);
  ASSERT_EQ(submit(batch, {entry(0, 64 * KiB), entry(1, 64 * KiB)}), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    unsigned count = 1;
    abi::BatchEvent event{};
    const bool good =
        library.cuFileBatchIOGetStatus(batch, 1, &count, &event, nullptr).code == 0 && count == 0;
    library.cuFileBatchIODestroy(batch);
    library.cuFileDriverClose_v2();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  fake.hold(0);
  EXPECT_EQ(collect(batch, 2, 4).size(), 2U);
}

TEST_F(Batches, CountersCountThem) {
  ASSERT_EQ(library.cuFileSetStatsLevel(3).code, 0);
  ASSERT_EQ(library.cuFileStatsStart().code, 0);
  void* batch = set_up(4);
  std::vector<abi::BatchEntry> entries;
  entries.reserve(4);
  for (std::size_t i = 0; i < 4; ++i) entries.push_back(entry(i, 4 * KiB));
  ASSERT_EQ(submit(batch, entries), 0);
  ASSERT_EQ(collect(batch, 4, 4).size(), 4U);
  std::vector<char> out(abi::stats_layout(1200).level3_bytes());
  ASSERT_EQ(library.cuFileGetStatsL3(out.data()).code, 0);
  abi::Level1 level1{};
  std::memcpy(&level1, out.data(), sizeof(level1));
  std::uint64_t bucket = 0;
  std::memcpy(&bucket, &out[sizeof(level1) + 8], 8);
  EXPECT_EQ(level1.batch_setup.ok, 1U);
  EXPECT_EQ(level1.batch_submit.ok, 1U);
  EXPECT_EQ(level1.batch_complete.ok, 1U);
  EXPECT_EQ(level1.batch_aio_submit.ok, 4U);
  EXPECT_EQ(level1.batch_total_submit.ok, 4U);
  EXPECT_EQ(level1.batch_read_bytes, 16 * KiB);
  EXPECT_EQ(level1.read.ok, 0U);
  EXPECT_EQ(bucket, 4U);
}

}  // namespace
}  // namespace straightway::cufile
