#include "cufile/json_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace straightway::cufile {
namespace {

constexpr int deepest = 64;

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  Result<JsonValue> whole() {
    JsonValue value;
    if (!skip() || !read(value, 0) || !skip()) return failure();
    if (!rest_.empty()) {
      fail("something stands behind the end");
      return failure();
    }
    return value;
  }

 private:
  bool fail(const char* why) {
    if (why_ == nullptr) why_ = why;
    return false;
  }

  Error failure() const {
    return Error{.kind = ErrorKind::invalid_argument,
                 .attempted = "read",
                 .path = name_,
                 .offset = {},
                 .why = fmt::format("{}:{}:{}: {}", name_, line_, column_, why_),
                 .advice = "correct the file, or name another in CUFILE_ENV_PATH_JSON"};
  }

  char front() const { return rest_.empty() ? '\0' : rest_.front(); }

  void advance(std::size_t count) {
    for (const char c : rest_.substr(0, count)) {
      ++column_;
      if (c == '\n') {
        ++line_;
        column_ = 1;
      }
    }
    rest_.remove_prefix(count);
  }

  // Blanks and comments.
  bool skip() {
    for (;;) {
      const auto blanks = std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size());
      advance(blanks);
      if (rest_.starts_with("//") || rest_.starts_with("#")) {
        advance(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with("/*")) {
        const auto end = rest_.find("*/", 2);
        if (end == std::string_view::npos) return fail("this comment has no end");
        advance(end + 2);
      } else {
        return true;
      }
    }
  }

  bool read(JsonValue& value, int depth) {
    value.line = line_;
    value.column = column_;
    if (depth > deepest) return fail("it is nested too deep");
    switch (front()) {
      case '{':
        return read_members(value.value.emplace<JsonValue::Members>(), depth);
      case '[':
        return read_list(value.value.emplace<JsonValue::List>(), depth);
      case '"':
        return read_text(value.value.emplace<std::string>());
      default:
        return read_word(value);
    }
  }

  // After an entry: true to go on, with the comma taken; the end is taken too.
  enum class Next { entry, end, error };
  Next next(char closing) {
    if (!skip()) return Next::error;
    const bool comma = front() == ',';
    if (comma) {
      advance(1);
      if (!skip()) return Next::error;
    }
    if (front() == closing) {
      advance(1);
      return Next::end;
    }
    if (comma) return Next::entry;
    fail(closing == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    return Next::error;
  }

  bool opens_empty(char closing) {
    if (front() != closing) return false;
    advance(1);
    return true;
  }

  bool read_members(JsonValue::Members& members, int depth) {
    advance(1);
    if (!skip()) return false;
    if (opens_empty('}')) return true;
    for (Next more = Next::entry; more == Next::entry;) {
      if (front() != '"') return fail("expected a name in quotes");
      auto& [name, value] = members.emplace_back();
      if (!read_text(name) || !skip()) return false;
      if (front() != ':') return fail("expected ':'");
      advance(1);
      if (!skip() || !read(value, depth + 1)) return false;
      more = next('}');
      if (more == Next::error) return false;
    }
    return true;
  }

  bool read_list(JsonValue::List& list, int depth) {
    advance(1);
    if (!skip()) return false;
    if (opens_empty(']')) return true;
    for (Next more = Next::entry; more == Next::entry;) {
      if (!read(list.emplace_back(), depth + 1)) return false;
      more = next(']');
      if (more == Next::error) return false;
    }
    return true;
  }

  // What stands behind a backslash; \u keeps its text, which no key of the file needs.
  static std::optional<char> escaped(char c) {
    constexpr std::string_view from = "\"\\/bfnrt";
    constexpr std::string_view to = "\"\\/\b\f\n\r\t";
    const auto at = from.find(c);
    return at == std::string_view::npos ? std::nullopt : std::optional(to[at]);
  }

  bool read_text(std::string& text) {
    advance(1);
    while (front() != '"') {
      if (rest_.empty() || front() == '\n') return fail("this text has no end");
      if (static_cast<unsigned char>(front()) < 0x20) return fail("a control character in a text");
      if (front() != '\\') {
        text += front();
        advance(1);
        continue;
      }
      const char c = rest_.size() > 1 ? rest_[1] : '\0';
      if (const auto plain = escaped(c)) {
        text += *plain;
      } else if (c == 'u') {
        text += "\\u";
      } else {
        return fail("an unknown escape in a text");
      }
      advance(2);
    }
    advance(1);
    return true;
  }

  bool read_word(JsonValue& value) {
    const auto end = std::min(rest_.find_first_of(" \t\r\n,:]}[{\"/#"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    if (word == "true" || word == "false") {
      value.value = word == "true";
    } else if (word == "null") {
      value.value = std::monostate{};
    } else if (!read_number(word, value)) {
      return fail("expected a value");
    }
    advance(end);
    return true;
  }

  static bool read_number(std::string_view word, JsonValue& value) {
    std::int64_t whole = 0;
    const char* first = word.data();
    const char* last = first + word.size();
    if (const auto [at, code] = std::from_chars(first, last, whole);
        at == last && code == std::errc{}) {
      value.value = whole;
      return true;
    }
    if (word.find_first_of("0123456789") == std::string_view::npos) return false;
    double other = 0;
    const auto [at, code] = std::from_chars(first, last, other);
    if (at != last || code == std::errc::invalid_argument) return false;
    value.value = other;
    return true;
  }

  std::string_view rest_;
  const std::string& name_;
  const char* why_ = nullptr;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto* members = std::get_if<Members>(&value);
  if (members == nullptr) return nullptr;
  for (auto at = members->rbegin(); at != members->rend(); ++at) {
    if (at->name == name) return &at->value;
  }
  return nullptr;
}

const char* JsonValue::kind() const {
  static constexpr const char* kinds[] = {"null",   "true or false", "a whole number", "a fraction",
                                          "a text", "a list",        "an object"};
  return kinds[value.index()];
}

Result<JsonValue> read_json(std::string_view text, const std::string& name) {
  return Reader(text, name).whole();
}

}  // namespace straightway::cufile
