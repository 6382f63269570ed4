#include "cufile/unknown_keys.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "cufile/keys.hpp"

namespace straightway::cufile {
namespace {

using testing::HasSubstr;

std::vector<UnknownKey> unknown_in(const std::string& text) {
  const auto json = read_json(text, "c.json");
  EXPECT_TRUE(json) << json.error().message();
  return find_unknown_keys(*json);
}

std::string said_of(const std::string& text) {
  const auto found = unknown_in(text);
  return found.size() == 1 ? found[0].name + " " + found[0].what : "";
}

TEST(UnknownKeys, EveryKeyAndAliasIsKnown) {
  EXPECT_TRUE(unknown_in(R"({
    "profile": {"io_batchsize": 32}, "blacklist": {"mounts": ["/x"]},
    "fs": {"lustre": {"mount_table": {"/a": {"rdma_dev_addr_list": []}}}},
    "properties": {"use_compat_mode": true,
                   "gpu_bounce_buffer_slab_config": {"slab_size_kb": [64]}}})")
                  .empty());
  for (const KeyInfo& key : all_keys()) {
    std::string text = "{";
    std::string ends = "1";
    for (const char c : "\"" + key.full_name() + "\":")
      text += c == '.' ? "\":{\"" : std::string(1, c);
    ends +=
        std::string(static_cast<std::size_t>(std::ranges::count(key.full_name(), '.')) + 1, '}');
    EXPECT_TRUE(unknown_in(text + ends).empty()) << key.full_name();
  }
}

TEST(UnknownKeys, AMisspeltKeyIsNamedWithTheLikelyOne) {
  EXPECT_THAT(said_of(R"({"properties": {"allow_compat_mod": true}})"),
              HasSubstr("properties.allow_compat_mod takes no effect: no key of this name is known "
                        "here; did you mean properties.allow_compat_mode?"));
  EXPECT_THAT(said_of(R"({"propertes": {"allow_compat_mode": true}})"),
              HasSubstr("did you mean properties?"));
  EXPECT_THAT(said_of(R"({"properties": {"max_io_threads": 4}})"),
              HasSubstr("did you mean execution.max_io_threads?"));
  EXPECT_THAT(said_of(R"({"something": {"else": 4}})"), testing::EndsWith("known here"));
  EXPECT_THAT(said_of(R"({"properties": []})"), HasSubstr("it must be an object, and is a list"));
}

TEST(UnknownKeys, HaveTheirPlaces) {
  const auto found = unknown_in("{\n \"a\": 1,\n\"fs\": {\"xfs\":\n {}}}");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].line, 2U);
  EXPECT_EQ(found[1].name, "fs.xfs");
  EXPECT_EQ(found[1].line, 4U);
}

TEST(UnknownKeys, AFloodOfThemIsCutShort) {
  std::string text = "{\"last\": 1";
  for (int i = 0; i < 100'000; ++i) text += ",\"key" + std::to_string(i) + "\":1";
  EXPECT_EQ(unknown_in(text + "}").size(), unknown_limit);
  EXPECT_EQ(unknown_in("{\"" + std::string(1 << 20, 'x') + "\":1}").size(), 1U);
}

}  // namespace
}  // namespace straightway::cufile
