#include "cufile/json_text.hpp"

#include <gmock/gmock.h>

namespace straightway::cufile {
namespace {

std::string failure(const std::string& text) {
  const auto json = read_json(text, "a.json");
  return json ? "" : json.error().why;
}

TEST(JsonText, TakesCommentsAndTrailingCommas) {
  const auto json = read_json(
      "// the first line\n"
      "{ /* a\n comment */ \"a\": [1, -2, ], # and this\n"
      "  \"b\": {\"c\": true,}, \"d\": \"x\\\"\\n//no comment\", \"e\": 1.5, \"f\": null, }\n",
      "a.json");
  ASSERT_TRUE(json) << json.error().message();
  const auto& list = std::get<JsonValue::List>(json->find("a")->value);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(std::get<std::int64_t>(list[1].value), -2);
  EXPECT_TRUE(std::get<bool>(json->find("b")->find("c")->value));
  EXPECT_EQ(std::get<std::string>(json->find("d")->value), "x\"\n//no comment");
  EXPECT_STREQ(json->find("e")->kind(), "a fraction");
  EXPECT_STREQ(json->find("f")->kind(), "null");
  EXPECT_EQ(json->find("g"), nullptr);
  EXPECT_EQ(json->find("b")->line, 4U);
  EXPECT_EQ(json->find("b")->column, 8U);
}

TEST(JsonText, SaysWhereItIsWrong) {
  EXPECT_EQ(failure("{\n  \"a\" 1}"), "a.json:2:7: expected ':'");
  EXPECT_EQ(failure("{\"a\": 1"), "a.json:1:8: expected ',' or '}'");
  EXPECT_EQ(failure("[1 2]"), "a.json:1:4: expected ',' or ']'");
  EXPECT_EQ(failure("{\"a\": tru}"), "a.json:1:7: expected a value");
  EXPECT_EQ(failure("{a: 1}"), "a.json:1:2: expected a name in quotes");
  EXPECT_EQ(failure("{\"a\n"), "a.json:1:4: this text has no end");
  EXPECT_EQ(failure("/* "), "a.json:1:1: this comment has no end");
  EXPECT_EQ(failure("{} {}"), "a.json:1:4: something stands behind the end");
  EXPECT_EQ(failure(""), "a.json:1:1: expected a value");
}

TEST(JsonText, NestsOnlySoDeep) {
  EXPECT_THAT(failure(std::string(100'000, '[')), testing::HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace straightway::cufile
