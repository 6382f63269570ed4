#include "plan/settings.hpp"

#include <gmock/gmock.h>

#include <map>

namespace straightway::plan {
namespace {

using testing::HasSubstr;

Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return {};
    return found->second;
  };
}

Settings read(std::map<std::string, std::string> variables, Settings settings = {}) {
  const Result<void> result = read_environment(settings, environment_of(std::move(variables)));
  EXPECT_TRUE(result.ok());
  return settings;
}

Error refusal(const char* name, const std::string& text) {
  Settings settings;
  Result<void> result = read_environment(settings, environment_of({{name, text}}));
  EXPECT_FALSE(result.ok()) << name << "=" << text;
  EXPECT_EQ(settings, Settings{}) << name << "=" << text;
  return result.ok() ? Error{} : result.error();
}

TEST(Settings, SizesArePowersOf1024InAnySpelling) {
  const std::map<const char*, std::uint64_t> spellings = {
      {"0", 0},
      {"1", 1},
      {"4194304", 4194304},
      {"4M", 4194304},
      {"4MiB", 4194304},
      {"4 MiB", 4194304},
      {"4mb", 4194304},
      {"512k", 524288},
      {"64KB", 65536},
      {"1G", 1073741824},
      {"2T", 2199023255552},
      {"100B", 100},
      {"9223372036854775807", 9223372036854775807U}};
  for (const auto& [text, size] : spellings) {
    Result<std::uint64_t> parsed = parse_size("X", text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, size) << text;
  }
}

TEST(Settings, F4_NonsenseSizesNameTheVariableAndTheForm) {
  for (const char* name :
       {"KVIKIO_TASK_SIZE", "KVIKIO_GDS_THRESHOLD", "STRAIGHTWAY_PINNED_BYTES"}) {
    for (const char* text : {"-1", "", "abc", "4X", "4MiBs", "M", " 4M", "4M ", "4  M", "4.5M",
                             "+4", "0x1000", "9223372036854775808", "18446744073709551616", "8E",
                             "16777216T", "99999999999999999999999"}) {
      const Error error = refusal(name, text);
      EXPECT_EQ(error.kind, ErrorKind::invalid_argument);
      EXPECT_THAT(error.attempted, HasSubstr(name));
      EXPECT_THAT(error.attempted, HasSubstr("'" + std::string(text) + "'"));
      EXPECT_THAT(error.advice, HasSubstr("4MiB"));
    }
  }
}

TEST(Settings, F4_ZeroIsRefusedWhereItMakesNoSense) {
  EXPECT_THAT(refusal("KVIKIO_TASK_SIZE", "0").why, HasSubstr("more than zero"));
  EXPECT_THAT(refusal("STRAIGHTWAY_PINNED_BYTES", "0").why, HasSubstr("1 MiB"));
  EXPECT_THAT(refusal("KVIKIO_NTHREADS", "0").advice, HasSubstr("from 1"));
  EXPECT_EQ(read({{"KVIKIO_GDS_THRESHOLD", "0"}}).front.gds_threshold_bytes.value, 0U);
  EXPECT_EQ(read({{"STRAIGHTWAY_THREADS", "0"}}).threads.value, 0U);
}

TEST(Settings, F4_CountsHaveBounds) {
  EXPECT_EQ(read({{"STRAIGHTWAY_THREADS", "1024"}}).threads.value, 1024U);
  for (const char* text : {"1025", "-1", "", "4M", "8 ", "99999999999999999999"}) {
    EXPECT_THAT(refusal("STRAIGHTWAY_THREADS", text).advice, HasSubstr("from 0 to 1024"));
  }
}

TEST(Settings, F6_EverySpellingOfYesAndNo) {
  for (const char* text : {"1", "true", "TRUE", "Yes", "oN"}) {
    EXPECT_TRUE(read({{"CUFILE_FORCE_COMPAT_MODE", text}}).cufile.force_compat_mode.value) << text;
  }
  for (const char* text : {"0", "false", "FALSE", "no", "Off"}) {
    EXPECT_FALSE(read({{"CUFILE_ALLOW_COMPAT_MODE", text}}).cufile.allow_compat_mode.value) << text;
  }
  for (const char* text : {"maybe", "", "2", "tru", "-1"}) {
    EXPECT_THAT(refusal("STRAIGHTWAY_LEDGER", text).attempted, HasSubstr("STRAIGHTWAY_LEDGER"));
  }
}

TEST(Settings, WordsOfEachVariable) {
  const Settings settings = read({{"STRAIGHTWAY_POLICY", "Direct"},
                                  {"STRAIGHTWAY_CACHE", "bypass"},
                                  {"STRAIGHTWAY_EVIDENCE", "observed"},
                                  {"STRAIGHTWAY_PINNED_BYTES", "32M"},
                                  {"STRAIGHTWAY_LEDGER", "off"},
                                  {"CUFILE_USE_PCIP2PDMA", "true"},
                                  {"KVIKIO_TASK_SIZE", "1073741824"}});
  EXPECT_EQ(settings.policy, (Setting<Policy>{Policy::direct, Origin::environment}));
  EXPECT_EQ(settings.cache, (Setting<Cache>{Cache::bypass, Origin::environment}));
  EXPECT_EQ(settings.evidence, (Setting<Demand>{Demand::observed, Origin::environment}));
  EXPECT_EQ(settings.pinned_bytes.value, std::uint64_t{32} << 20);
  EXPECT_FALSE(settings.ledger.value);
  EXPECT_TRUE(settings.cufile.use_pci_p2pdma.value);
  EXPECT_EQ(settings.front.task_size_bytes.value, std::uint64_t{1} << 30);
  EXPECT_THAT(refusal("STRAIGHTWAY_POLICY", "fast").advice, HasSubstr("auto, direct or staged"));
  EXPECT_THAT(refusal("STRAIGHTWAY_CACHE", "").advice, HasSubstr("bypass"));
  EXPECT_THAT(refusal("STRAIGHTWAY_EVIDENCE", "all").advice, HasSubstr("observed"));
}

TEST(Settings, CompatModeTakesKvikioSpellings) {
  for (const char* text : {"ON", "true", "Yes", "1"}) {
    EXPECT_EQ(read({{"KVIKIO_COMPAT_MODE", text}}).front.compat_mode.value, CompatMode::on);
  }
  for (const char* text : {"OFF", "FALSE", "no", "0"}) {
    EXPECT_EQ(read({{"KVIKIO_COMPAT_MODE", text}}).front.compat_mode.value, CompatMode::off);
  }
  EXPECT_EQ(read({{"KVIKIO_COMPAT_MODE", "auto"}}).front.compat_mode,
            (Setting<CompatMode>{CompatMode::automatic, Origin::environment}));
  EXPECT_THAT(refusal("KVIKIO_COMPAT_MODE", "sometimes").advice, HasSubstr("AUTO"));
}

TEST(Settings, ThreadsAndTheirAliasMustAgree) {
  EXPECT_EQ(read({{"KVIKIO_NTHREADS", "8"}}).front.threads.value, 8U);
  EXPECT_EQ(read({{"KVIKIO_NUM_THREADS", "8"}}).front.threads.value, 8U);
  EXPECT_EQ(read({{"KVIKIO_NTHREADS", "8"}, {"KVIKIO_NUM_THREADS", "8"}}).front.threads,
            (Setting<std::uint64_t>{8, Origin::environment}));
  Settings settings;
  const auto both = environment_of({{"KVIKIO_NTHREADS", "8"}, {"KVIKIO_NUM_THREADS", "4"}});
  const Result<void> result = read_environment(settings, both);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().attempted, HasSubstr("KVIKIO_NUM_THREADS to '4'"));
  EXPECT_THAT(result.error().why, HasSubstr("KVIKIO_NTHREADS is 8"));
  EXPECT_THAT(refusal("KVIKIO_NUM_THREADS", "2147483648").advice, HasSubstr("2147483647"));
}

TEST(Settings, F3_WhatTheProgramSetSurvivesTheEnvironment) {
  Settings settings;
  settings.threads = {12, Origin::api};
  settings.policy = {Policy::staged, Origin::call};
  settings.front.threads = {3, Origin::api};
  settings.cufile.allow_compat_mode = {true, Origin::file};
  const Settings after = read({{"STRAIGHTWAY_THREADS", "2"},
                               {"STRAIGHTWAY_POLICY", "direct"},
                               {"KVIKIO_NTHREADS", "9"},
                               {"CUFILE_ALLOW_COMPAT_MODE", "false"}},
                              settings);
  EXPECT_EQ(after.threads, (Setting<std::uint64_t>{12, Origin::api}));
  EXPECT_EQ(after.policy, (Setting<Policy>{Policy::staged, Origin::call}));
  EXPECT_EQ(after.front.threads, (Setting<std::uint64_t>{3, Origin::api}));
  EXPECT_EQ(after.cufile.allow_compat_mode, (Setting<bool>{false, Origin::environment}));
  EXPECT_EQ(after.cache, Settings{}.cache);
}

TEST(Settings, F3_NonsenseIsAnErrorEvenWhereTheProgramOverridesIt) {
  Settings settings;
  settings.threads = {12, Origin::api};
  EXPECT_FALSE(read_environment(settings, environment_of({{"STRAIGHTWAY_THREADS", "x"}})).ok());
}

TEST(Settings, HostileTextIsBoundedAndPrintableInTheError) {
  const Error error = refusal("KVIKIO_TASK_SIZE", "\x1b[2J" + std::string(100000, '9'));
  EXPECT_THAT(error.attempted, HasSubstr("'?[2J999"));
  EXPECT_LT(error.attempted.size(), 120U);
}

TEST(Settings, TheVendorsLibraryHasAnAbsolutePathOrNone) {
  EXPECT_EQ(read({}).vendor_library.value, "");
  for (const char* text : {"/opt/libcufile.so.0", "none", ""}) {
    EXPECT_EQ(read({{"STRAIGHTWAY_VENDOR_LIBRARY", text}}).vendor_library,
              (Setting<std::string>{text, Origin::environment}));
  }
  EXPECT_THAT(refusal("STRAIGHTWAY_VENDOR_LIBRARY", "libcufile.so.0").why, HasSubstr("absolute"));
}

}  // namespace
}  // namespace straightway::plan
