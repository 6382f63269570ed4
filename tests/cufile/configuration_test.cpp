#include "cufile/configuration.hpp"

#include <gmock/gmock.h>

#include <map>

#include "tests/temp_file.hpp"

namespace straightway::cufile {
namespace {

using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Configuration::Environment environment(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Configuration read(const std::string& text) {
  Configuration config;
  const auto done = config.read_file(text, "c.json");
  EXPECT_TRUE(done) << done.error().message();
  return config;
}

TEST(Keys, StandAtTheirPlacesAndFitThemselves) {
  ASSERT_EQ(all_keys().size(), key_count);
  for (std::size_t i = 0; i < key_count; ++i) {
    const KeyInfo& key = all_keys()[i];
    EXPECT_EQ(static_cast<std::size_t>(key.key), i) << key.full_name();
    EXPECT_EQ(misfit(key, key.standard), "") << key.full_name();
  }
}

TEST(Keys, ValuesThatDoNotFitSayWhatWould) {
  EXPECT_EQ(misfit(info(Key::max_direct_io_size_kb), std::int64_t{100}),
            "it must be 64 to 16384, a multiple of 64");
  EXPECT_EQ(misfit(info(Key::max_io_threads), std::string("4")), "it must be a whole number");
  EXPECT_EQ(misfit(info(Key::io_priority), std::string("hi")),
            "it must be one of default low med high");
  EXPECT_EQ(misfit(info(Key::posix_pool_slab_count), Numbers{}), "it must not be empty");
}

TEST(Configuration, ReadsEveryKindOfKey) {
  const Configuration config = read(R"({
    "logging": {"level": "debug"},
    "execution": {"max_io_threads": 8, "parallel_io": false},
    "properties": {"posix_pool_slab_size_kb": [4, 64], "use_compat_mode": false,
      "gpu_bounce_buffer_slab_config": {"slab_size_kb": [64]}},
    "profile": {"io_batchsize": 32},
    "fs": {"lustre": {"posix_gds_min_kb": 4, "mount_table": {"/a": {}, "/b": {}}}},
    "blacklist": {"mounts": ["/x"]}})");
  EXPECT_EQ(config.text(Key::logging_level), "DEBUG");
  EXPECT_EQ(config.number(Key::max_io_threads), 8);
  EXPECT_EQ(config.get(Key::max_io_threads).origin, Origin::file);
  EXPECT_FALSE(config.flag(Key::parallel_io));
  EXPECT_FALSE(config.flag(Key::allow_compat_mode));
  EXPECT_EQ(config.numbers(Key::posix_pool_slab_size_kb), (Numbers{4, 64}));
  EXPECT_EQ(config.numbers(Key::gpu_bounce_slab_size_kb), Numbers{64});
  EXPECT_EQ(config.number(Key::io_batchsize), 32);
  EXPECT_EQ(config.texts(Key::lustre_mount_table), (Texts{"/a", "/b"}));
  EXPECT_EQ(config.texts(Key::denylist_mounts), Texts{"/x"});
  EXPECT_EQ(config.number(Key::lustre_posix_gds_min_kb), 4);
  EXPECT_EQ(config.layer().max_io_threads.value, 8U);
  EXPECT_EQ(config.layer().max_io_threads.origin, Origin::file);
  EXPECT_EQ(config.get(Key::max_io_queue_depth).origin, Origin::built_in);
  EXPECT_TRUE(config.remarks().empty());
}

// F1: what does not fit is left at its default, and said with its place.
TEST(Configuration, F1_WrongTypesAndRangesKeepTheDefaultAndAreSaid) {
  const Configuration config = read(
      "{\"execution\": {\"max_io_threads\": \"4\",\n \"max_request_parallelism\": 9},\n"
      "\"denylist\": {\"mounts\": [1]}, \"properties\": 5, \"unknown\": {\"key\": 1}}");
  EXPECT_EQ(config.number(Key::max_io_threads), 4);
  EXPECT_EQ(config.number(Key::max_request_parallelism), 4);
  ASSERT_EQ(config.remarks().size(), 5U);
  EXPECT_EQ(
      config.remarks()[0].text(),
      "c.json:1:34: execution.max_io_threads: it must be a whole number, and is 4; 4 is used");
  EXPECT_THAT(config.remarks()[1].text(), HasSubstr("c.json:2:29: execution.max_request_parallelism"
                                                    ": it must be 0 to 8, and is 9; 4 is used"));
  EXPECT_THAT(config.remarks()[2].text(), HasSubstr("denylist.mounts: it must be a list of texts"));
  EXPECT_THAT(config.remarks()[3].text(), HasSubstr("properties: takes no effect: it must be an"));
  EXPECT_EQ(config.remarks()[4].text(),
            "c.json:3:58: unknown: takes no effect: no key of this name is known here");
}

TEST(Configuration, F1_TextThatIsNoJsonIsAnErrorWithItsPlace) {
  Configuration config;
  const auto read = config.read_file("{\n\"execution\": {\"a\" 1}}", "c.json");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("c.json:2:19: expected ':'"));
  EXPECT_THAT(config.read_file("[]", "c.json").error().why, HasSubstr("expected an object"));
}

TEST(Configuration, F1_FilesAreFoundInTheDocumentedOrder) {
  const tests::TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder.path(name)).parent_path());
    folder.write(name, {text.begin(), text.end()});
  };
  const std::string root = folder.path("root");
  EXPECT_EQ(find_file(environment({}), root).path, "");
  write("root/usr/local/cuda/gds/cufile.json", "{}");
  EXPECT_EQ(find_file(environment({}), root).path, root + "/usr/local/cuda/gds/cufile.json");
  write("root/etc/cufile.json", "{}");
  EXPECT_EQ(find_file(environment({}), root).path, root + "/etc/cufile.json");
  write("own.json", "{} // mine");
  const std::string own = folder.path("own.json");
  EXPECT_EQ(find_file(environment({{"CUFILE_ENV_PATH_JSON", own}}), root).path, own);
  EXPECT_EQ(find_file(environment({{"CUFILE_ENV_PATH_JSON", own + "x"}}), root).path,
            root + "/etc/cufile.json");
}

TEST(Configuration, ApiComesBeforeEnvironmentBeforeFile) {
  const tests::TempFolder folder;
  const std::string text =
      R"({"properties": {"force_compat_mode": false, "allow_compat_mode": false}})";
  const std::string path = folder.write("c.json", {text.begin(), text.end()});
  Configuration start;
  start.set(Key::allow_compat_mode, true, Origin::api);
  const auto config = load_configuration(environment({{"CUFILE_ENV_PATH_JSON", path},
                                                      {"CUFILE_FORCE_COMPAT_MODE", "true"},
                                                      {"CUFILE_ALLOW_COMPAT_MODE", "false"},
                                                      {"CUFILE_STATS_LEVEL", "3"},
                                                      {"CUFILE_LOGFILE_PATH", "/x/y.log"}}),
                                         start);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->flag(Key::allow_compat_mode));
  EXPECT_EQ(config->get(Key::allow_compat_mode).origin, Origin::api);
  EXPECT_TRUE(config->flag(Key::force_compat_mode));
  EXPECT_EQ(config->get(Key::force_compat_mode).origin, Origin::environment);
  EXPECT_EQ(config->number(Key::profile_cufile_stats), 3);
  EXPECT_EQ(config->log_path, "/x/y.log");
}

TEST(Configuration, NonsenseInAVariableNamesIt) {
  const auto config =
      load_configuration(environment({{"CUFILE_STATS_LEVEL", "4"}}), {}, "/nowhere");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message(), HasSubstr("CUFILE_STATS_LEVEL"));
}

TEST(Configuration, ValuesThatChangeNothingAreSaid) {
  Configuration config = read(R"({"properties": {"rdma_topN_ranks": 2, "prefer_iouring": true,
                                                 "io_batchsize": 64}})");
  config.remark_effects();
  ASSERT_EQ(config.remarks().size(), 2U);
  EXPECT_EQ(config.remarks()[0].text(),
            "properties.prefer_iouring = true (file) takes no effect: nothing here depends on it");
  EXPECT_FALSE(config.remarks()[0].error);
  EXPECT_THAT(config.remarks()[1].text(), HasSubstr("rdma_topN_ranks = 2"));
}

}  // namespace
}  // namespace straightway::cufile
