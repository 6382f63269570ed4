// The driver and its parameters, through the exported functions. Numbers of codes stand as they are
// documented.

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "cufile/topology.hpp"
#include "cufile/version.hpp"
#include "tests/cufile/library.hpp"

namespace straightway::cufile {
namespace {

using Driver = CufileTest;

TEST_F(Driver, OpensNestAndOneCloseTooManyIsRefused) {
  EXPECT_EQ(library.cuFileDriverClose_v2().code, 5001);
  EXPECT_EQ(library.cuFileDriverClose().code, 5001);
  EXPECT_EQ(library.cuFileUseCount(), 0);
  EXPECT_EQ(library.cuFileDriverOpen().code, 0);
  EXPECT_EQ(library.cuFileDriverOpen().code, 0);
  EXPECT_EQ(library.cuFileUseCount(), 2);
  EXPECT_EQ(library.cuFileDriverClose().code, 0);
  EXPECT_EQ(library.cuFileDriverClose_v2().code, 0);
  EXPECT_EQ(library.cuFileUseCount(), 0);
  EXPECT_EQ(library.cuFileDriverClose_v2().code, 5001);
}

TEST_F(Driver, PropertiesAreThoseOfTheShippedFile) {
  abi::Properties closed{};
  EXPECT_EQ(library.cuFileDriverGetProperties(&closed).code, 0);
  EXPECT_EQ(library.cuFileUseCount(), 0);
  EXPECT_EQ(closed.feature_flags, 0U);
  EXPECT_EQ(closed.per_buffer_cache_kb, 0U);
  EXPECT_EQ(closed.max_pinned_kb, 4294967292U);
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  abi::Properties open{};
  EXPECT_EQ(library.cuFileDriverGetProperties(&open).code, 0);
  EXPECT_EQ(open.major_version, 0U);
  EXPECT_EQ(open.poll_threshold_kb, 4U);
  EXPECT_EQ(open.max_direct_io_kb, 16384U);
  EXPECT_EQ(open.status_flags, 0U);
  EXPECT_EQ(open.control_flags, 2U);
  EXPECT_EQ(open.feature_flags, 0xfU);
  EXPECT_EQ(open.max_device_cache_kb, 131072U);
  EXPECT_EQ(open.per_buffer_cache_kb, 1024U);
  EXPECT_EQ(open.max_pinned_kb, 33554432U);
  EXPECT_EQ(open.max_batch_io_size, 128U);
  EXPECT_EQ(open.max_batch_io_timeout_ms, 5U);
  EXPECT_EQ(library.cuFileDriverGetProperties(nullptr).code, 5022);
}

TEST_F(Driver, WithoutParallelIoThereAreNoStreams) {
  write_config(R"({"execution": {"parallel_io": false}})");
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  abi::Properties open{};
  library.cuFileDriverGetProperties(&open);
  EXPECT_EQ(open.feature_flags, 0x3U);
}

TEST_F(Driver, SettersCheckTheirValuesAndChangeNoProperty) {
  for (const bool open : {false, true}) {
    if (open) {
      ASSERT_EQ(library.cuFileDriverOpen().code, 0);
    }
    for (const std::size_t bad : {0UL, 1UL, 5UL}) {
      EXPECT_EQ(library.cuFileDriverSetPollMode(true, bad).code, 5022);
    }
    for (const std::size_t good : {4UL, 64UL, 1UL << 40}) {
      EXPECT_EQ(library.cuFileDriverSetPollMode(true, good).code, 0);
    }
    for (const std::size_t bad : {0UL, 32UL, 100UL, 16448UL}) {
      EXPECT_EQ(library.cuFileDriverSetMaxDirectIOSize(bad).code, 5022);
    }
    EXPECT_EQ(library.cuFileDriverSetMaxDirectIOSize(64).code, 0);
    for (const auto set :
         {library.cuFileDriverSetMaxCacheSize, library.cuFileDriverSetMaxPinnedMemSize}) {
      for (const std::size_t good : {0UL, 64UL, 1000UL, 2048UL, 131072UL, 1UL << 22}) {
        EXPECT_EQ(set(good).code, 0);
      }
      EXPECT_EQ(set(1).code, 5022);
      EXPECT_EQ(set(1UL << 40).code, 5003);
    }
    EXPECT_EQ(library.cuFileUseCount(), open ? 1 : 0);
  }
  abi::Properties properties{};
  library.cuFileDriverGetProperties(&properties);
  EXPECT_EQ(properties.max_direct_io_kb, 16384U);
  EXPECT_EQ(properties.max_pinned_kb, 33554432U);
}

TEST_F(Driver, P2pFlagsAreNoneAndOneMayBeAskedFor) {
  int flags = 7;
  EXPECT_EQ(library.cuFileDriverGetP2PFlags(4, &flags).code, 0);
  EXPECT_EQ(flags, 0);
  EXPECT_EQ(library.cuFileDriverGetP2PFlags(-1, &flags).code, 0);
  EXPECT_EQ(library.cuFileDriverGetP2PFlags(15, &flags).code, 5022);
  EXPECT_EQ(library.cuFileDriverSetP2PFlags(4, 0).code, 0);
  EXPECT_EQ(library.cuFileDriverSetP2PFlags(4, 1).code, 0);
  EXPECT_EQ(library.cuFileDriverSetP2PFlags(4, 2).code, 5022);
}

TEST_F(Driver, ClosedParametersShowWhatTheVendorsShow) {
  const std::size_t expected[] = {0, 128, 8, 1024, 4, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 12; ++i) {
    std::size_t value = 99;
    EXPECT_EQ(library.cuFileGetParameterSizeT(i, &value).code, 0);
    EXPECT_EQ(value, expected[i]) << i;
  }
  for (int i = 0; i < 14; ++i) {
    bool value = false;
    EXPECT_EQ(library.cuFileGetParameterBool(i, &value).code, i == 5 ? 5022 : 0);
    EXPECT_EQ(value, i == 4) << i;
  }
  char text[8] = "x";
  EXPECT_EQ(library.cuFileGetParameterString(0, text, 8).code, 0);
  EXPECT_STREQ(text, "");
  std::size_t slabs[3];
  EXPECT_EQ(library.cuFileGetParameterPosixPoolSlabArray(slabs, slabs, 3).code, 5022);
}

TEST_F(Driver, StagedValuesAreReadBackAndCountAtTheOpen) {
  EXPECT_EQ(library.cuFileSetParameterSizeT(2, 8).code, 0);     // threads
  EXPECT_EQ(library.cuFileSetParameterSizeT(9, 16).code, 0);    // batch
  EXPECT_EQ(library.cuFileSetParameterSizeT(3, 3).code, 0);     // threshold: too small
  EXPECT_EQ(library.cuFileSetParameterSizeT(5, 2048).code, 0);  // max_direct
  EXPECT_EQ(library.cuFileSetParameterSizeT(6, 1UL << 40).code, 0);
  EXPECT_EQ(library.cuFileSetParameterBool(2, true).code, 0);  // force compat
  EXPECT_EQ(library.cuFileSetParameterString(0, "bogus").code, 0);
  const std::size_t sizes[] = {64, 4};
  const std::size_t counts[] = {0, 3};
  EXPECT_EQ(library.cuFileSetParameterPosixPoolSlabArray(sizes, counts, 2).code, 0);
  std::size_t value = 0;
  library.cuFileGetParameterSizeT(6, &value);
  EXPECT_EQ(value, 1UL << 40);
  char text[16];
  EXPECT_EQ(library.cuFileGetParameterString(0, text, 6).code, 0);
  EXPECT_STREQ(text, "bogus");
  EXPECT_EQ(library.cuFileGetParameterString(0, text, 5).code, 5022);
  std::size_t seen[2];
  EXPECT_EQ(library.cuFileGetParameterPosixPoolSlabArray(seen, seen, 2).code, 0);

  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  const std::size_t running[] = {0, 128, 8, 8192, 4, 2048, 131072, 1024, 33554432, 16, 4, 5};
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(library.cuFileGetParameterSizeT(i, &value).code, 0);
    EXPECT_EQ(value, running[i]) << i;
  }
  bool force = false;
  library.cuFileGetParameterBool(2, &force);
  EXPECT_TRUE(force);
  EXPECT_EQ(library.cuFileGetParameterString(0, text, 16).code, 0);
  EXPECT_STREQ(text, "ERROR");
  std::size_t slab_sizes[3];
  std::size_t slab_counts[3];
  EXPECT_EQ(library.cuFileGetParameterPosixPoolSlabArray(slab_sizes, slab_counts, 2).code, 5022);
  EXPECT_EQ(library.cuFileGetParameterPosixPoolSlabArray(slab_sizes, slab_counts, 3).code, 0);
  EXPECT_EQ(slab_sizes[2], 16384U);
  abi::Properties properties{};
  library.cuFileDriverGetProperties(&properties);
  EXPECT_EQ(properties.max_direct_io_kb, 2048U);
  EXPECT_EQ(properties.max_batch_io_size, 16U);
  EXPECT_EQ(library.cuFileSetParameterSizeT(2, 4).code, 5026);
  EXPECT_EQ(library.cuFileSetParameterBool(2, false).code, 5026);
  EXPECT_EQ(library.cuFileSetParameterString(0, "WARN").code, 5026);
  library.cuFileDriverClose_v2();
  library.cuFileGetParameterSizeT(2, &value);
  EXPECT_EQ(value, 8U);  // what a closed driver shows
  library.cuFileGetParameterSizeT(9, &value);
  EXPECT_EQ(value, 0U);
}

TEST_F(Driver, NonsenseParametersAreRefused) {
  std::size_t value = 7;
  EXPECT_EQ(library.cuFileGetParameterSizeT(12, &value).code, 5022);
  EXPECT_EQ(library.cuFileGetParameterSizeT(-1, &value).code, 5022);
  EXPECT_EQ(library.cuFileGetParameterSizeT(0, nullptr).code, 5022);
  EXPECT_EQ(value, 7U);
  EXPECT_EQ(library.cuFileSetParameterSizeT(12, 1).code, 5022);
  EXPECT_EQ(library.cuFileSetParameterBool(14, true).code, 5022);
  EXPECT_EQ(library.cuFileSetParameterString(0, nullptr).code, 5022);
  EXPECT_EQ(library.cuFileSetParameterString(0, "").code, 5022);
  EXPECT_EQ(library.cuFileSetParameterString(4, "x").code, 5022);
  EXPECT_EQ(library.cuFileSetParameterPosixPoolSlabArray(nullptr, &value, 1).code, 5022);
  EXPECT_EQ(library.cuFileSetParameterPosixPoolSlabArray(&value, &value, 0).code, 5022);
  EXPECT_EQ(library.cuFileSetParameterGpuBounceBufferSlabArray(&value, &value, -1).code, 5022);
}

TEST_F(Driver, RangesAreTheMeasuredOnes) {
  struct Range {
    std::size_t least, most;
  };
  const Range ranges[] = {{0, 0},
                          {1, 256},
                          {0, 128},
                          {4, 4294967295},
                          {0, 8},
                          {64, 16384},
                          {0, 268435456},
                          {64, 16384},
                          {64, 268435456},
                          {1, 256},
                          {4, 18014398509481980},
                          {1, 1000}};
  for (int i = 1; i < 12; ++i) {
    Range seen{};
    EXPECT_EQ(library.cuFileGetParameterMinMaxValue(i, &seen.least, &seen.most).code, 0);
    EXPECT_EQ(seen.least, ranges[i].least) << i;
    EXPECT_EQ(seen.most, ranges[i].most) << i;
  }
  Range untouched{5, 6};
  for (const int bad : {0, -1, 12}) {
    EXPECT_EQ(library.cuFileGetParameterMinMaxValue(bad, &untouched.least, &untouched.most).code,
              5022);
  }
  EXPECT_EQ(untouched.least, 5U);
}

TEST_F(Driver, F1_AFileThatIsNoJsonRefusesTheOpenAndTheLogSaysWhere) {
  write_config("{\"execution\": }");
  const std::string log = folder.path("own.log");
  ::setenv("CUFILE_LOGFILE_PATH", log.c_str(), 1);
  EXPECT_EQ(library.cuFileDriverOpen().code, 5002);
  EXPECT_EQ(library.cuFileUseCount(), 0);
  const auto text = folder.read("own.log");
  const std::string line(text.begin(), text.end());
  EXPECT_THAT(line, testing::HasSubstr("cufile.json:1:15: expected a value"));
  EXPECT_THAT(line, testing::ContainsRegex(
                        "^ [0-9-]+ [0-9:]+ \\[pid=[0-9]+ tid=[0-9]+\\] ERROR  driver:[0-9]+ "));
  ::unsetenv("CUFILE_LOGFILE_PATH");
  write_config("{}");
  EXPECT_EQ(library.cuFileDriverOpen().code, 0);
}

TEST_F(Driver, ThereIsNoLogUnlessAskedFor) {
  const auto before = std::filesystem::exists("cufile.log");
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  EXPECT_EQ(std::filesystem::exists("cufile.log"), before);
  library.cuFileDriverClose_v2();
  write_config("{\"logging\": {\"dir\": \"" + folder.path("") +
               "\", \"level\": \"INFO\"}, \"properties\": {\"prefer_iouring\": true}}");
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  const auto text = folder.read("cufile.log");
  EXPECT_THAT(std::string(text.begin(), text.end()), testing::HasSubstr("WARN   session:"));
}

TEST_F(Driver, ValuesWithoutEffectAreSaidOnceInTheLog) {
  write_config("{\"logging\": {\"dir\": \"" + folder.path("") + R"(", "level": "WARN"},
      "properties": {"prefer_iouring": true, "posix_pool_slab_count": [1, 2, 3],
                     "use_poll_mode": 1}})");
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  for (int i = 0; i < 3; ++i) register_fd(open_file(folder.write("data", {'x'})));
  const auto bytes = folder.read("cufile.log");
  const std::string text(bytes.begin(), bytes.end());
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("properties.prefer_iouring = true (file) takes no effect: nothing here depends"),
            1U);
  EXPECT_EQ(count("properties.posix_pool_slab_count = [1,2,3] (file) takes no effect"), 1U);
  EXPECT_EQ(count(":3:39: properties.use_poll_mode: it must be true or false"), 1U) << text;
}

TEST_F(Driver, TheLastCloseLogsTheStatistics) {
  write_config("{\"logging\": {\"dir\": \"" + folder.path("") + R"(", "level": "INFO"},
      "profile": {"cufile_stats": 2}})");
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  register_fd(open_file(folder.write("data", {'x'})));
  const auto log = [&] {
    const auto bytes = folder.read("cufile.log");
    return std::string(bytes.begin(), bytes.end());
  };
  EXPECT_THAT(log(), testing::Not(testing::HasSubstr("cuFile STATS VERSION : 8")));
  while (library.cuFileUseCount() > 0) library.cuFileDriverClose_v2();
  EXPECT_THAT(log(), testing::HasSubstr("cuFile STATS VERSION : 8\n"));
  EXPECT_THAT(log(), testing::HasSubstr("HandleRegister: ok = 1 err = 0\n"));
  EXPECT_THAT(log(), testing::HasSubstr("65536-...(KiB): 0 0\n"));
  EXPECT_THAT(log(), testing::Not(testing::HasSubstr("PER_GPU")));
}

TEST_F(Driver, TheVersionIsTheOneAskedFor) {
  int version = 0;
  EXPECT_EQ(library.cuFileGetVersion(&version).code, 0);
  EXPECT_EQ(version, 1200);
  EXPECT_EQ(library.cuFileGetVersion(nullptr).code, 5022);
}

TEST_F(Driver, TheTopologyIsWrittenWhereItCanBe) {
  const std::string path = folder.path("topology");
  EXPECT_EQ(library.cuFileExportPCIeTopology(path.c_str()).code, 0);
  const auto text = folder.read("topology");
  EXPECT_THAT(std::string(text.begin(), text.end()),
              testing::StartsWith("// Topology file for cuFile.\n"));
  EXPECT_EQ(library.cuFileExportPCIeTopology("/nowhere/x").code, 5022);
  EXPECT_EQ(library.cuFileExportPCIeTopology(nullptr).code, 5022);
}

TEST(Topology, NamesAcceleratorsAndAdapters) {
  const tests::TempFolder root;
  const auto add = [&](const std::string& device, const std::string& pci_class) {
    const std::string path = root.path("sys/bus/pci/devices/" + device);
    std::filesystem::create_directories(path);
    std::ofstream(path + "/class") << pci_class << "\n";
    std::ofstream(path + "/numa_node") << "1\n";
  };
  add("0000:02:00.0", "0x030200");
  add("0000:01:00.0", "0x020000");
  add("0000:03:00.0", "0x060400");
  EXPECT_EQ(topology_text(root.path("")),
            "// Topology file for cuFile.\n0000:01:00.0 network numa_node=1\n"
            "0000:02:00.0 gpu numa_node=1\n");
}

TEST(Version, IsReadFromTextNamesAndExports) {
  EXPECT_EQ(parse_version("1.15"), 1150);
  EXPECT_EQ(parse_version("1.15.1"), 1150);
  EXPECT_EQ(parse_version("1190"), 1190);
  EXPECT_EQ(parse_version("0"), 0);
  EXPECT_EQ(parse_version("x"), 0);
  EXPECT_EQ(parse_version("1.x"), 0);
  const tests::TempFolder folder;
  const std::string exports("\0cuFileGetStatsL1\0cuFileReadv\0", 30);
  const auto plain = folder.write("libcufile.so.0", {exports.begin(), exports.end()});
  EXPECT_EQ(library_version(plain), 1190);
  const auto named = folder.write("libcufile.so.1.16.2", {});
  std::filesystem::create_symlink(named, folder.path("link.so.0"));
  EXPECT_EQ(library_version(folder.path("link.so.0")), 1160);
  EXPECT_EQ(library_version(folder.path("none")), 0);
}

TEST_F(Driver, StatisticsFollowTheirLevels) {
  char out[8192];
  EXPECT_EQ(library.cuFileGetStatsL1(out).code, 5001);
  EXPECT_EQ(library.cuFileStatsStart().code, 5001);
  EXPECT_EQ(library.cuFileStatsStop().code, 5001);
  EXPECT_EQ(library.cuFileStatsReset().code, 5001);
  int level = 9;
  EXPECT_EQ(library.cuFileGetStatsLevel(&level).code, 0);
  EXPECT_EQ(level, 0);
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  EXPECT_EQ(library.cuFileStatsStart().code, 5030);
  EXPECT_EQ(library.cuFileGetStatsL1(out).code, 5022);
  EXPECT_EQ(library.cuFileSetStatsLevel(-1).code, 5022);
  EXPECT_EQ(library.cuFileSetStatsLevel(4).code, 5022);
  EXPECT_EQ(library.cuFileSetStatsLevel(2).code, 0);
  EXPECT_EQ(library.cuFileStatsStart().code, 0);
  EXPECT_EQ(library.cuFileStatsStart().code, 0);
  EXPECT_EQ(library.cuFileGetStatsL1(out).code, 0);
  EXPECT_EQ(library.cuFileGetStatsL2(out).code, 0);
  EXPECT_EQ(library.cuFileGetStatsL3(out).code, 5022);
  EXPECT_EQ(library.cuFileGetStatsL1(nullptr).code, 5022);
  EXPECT_EQ(library.cuFileGetStatsLevel(nullptr).code, 5022);
}

TEST_F(Driver, TheLibraryShowsTheDocumentedNamesOnly) {
  void* handle = ::dlopen(CUFILE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(::dlsym(handle, "straightway_cufile"), nullptr);
  EXPECT_EQ(::dlsym(handle, "sw_version"), nullptr);
  EXPECT_EQ(::dlclose(handle), 0);
}

}  // namespace
}  // namespace straightway::cufile
