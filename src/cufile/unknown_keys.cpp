#include "cufile/unknown_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "cufile/keys.hpp"
#include "os/system_text.hpp"

namespace straightway::cufile {
namespace {

// Longer names than any key has are not compared with them.
constexpr std::size_t compared_limit = 64;

using Names = std::set<std::string, std::less<>>;

Names known_keys() {
  Names names;
  for (const KeyInfo& key : all_keys()) {
    names.insert(key.full_name());
    std::string_view aliases = key.alias;
    while (!aliases.empty()) names.emplace(os::take_field(aliases, ' '));
  }
  return names;
}

bool is_section(const Names& names, const std::string& path) {
  const std::string start = path + ".";
  const auto at = names.lower_bound(start);
  return at != names.end() && at->starts_with(start);
}

// How many letters must be put in, left out or changed.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i + 1;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const std::size_t changed = corner + (a[i] == b[k] ? 0 : 1);
      corner = row[k + 1];
      row[k + 1] = std::min({changed, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row.back();
}

std::string_view last_part(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

// The sections that a key stands in are candidates as well.
Names with_sections(const Names& keys) {
  Names all = keys;
  for (const std::string& key : keys) {
    for (auto dot = key.rfind('.'); dot != std::string::npos; dot = key.rfind('.', dot - 1)) {
      all.insert(key.substr(0, dot));
    }
  }
  return all;
}

// The known name that is most like it: in the same place with another spelling, else the same word
// in another place. Empty where none is close.
std::string find_likely(const Names& candidates, const std::string& path) {
  if (path.size() > compared_limit) return "";
  const std::size_t most = std::max<std::size_t>(1, last_part(path).size() / 3);
  std::size_t best = most + 1;
  std::string likely;
  for (const std::string& candidate : candidates) {
    const std::size_t apart = distance(path, candidate);
    if (apart < best) {
      best = apart;
      likely = candidate;
    }
  }
  if (!likely.empty()) return likely;
  const auto same = std::ranges::find_if(candidates, [&](const std::string& candidate) {
    return last_part(candidate) == last_part(path);
  });
  return same == candidates.end() ? "" : *same;
}

class Search {
 public:
  void look(const JsonValue::Members& members, const std::string& prefix) {
    for (const JsonValue::Member& member : members) {
      if (found.size() == unknown_limit) return;
      look_at(member, prefix.empty() ? member.name : prefix + "." + member.name);
    }
  }
  std::vector<UnknownKey> found;

 private:
  void look_at(const JsonValue::Member& member, const std::string& path) {
    if (keys_.contains(path)) return;
    const JsonValue& value = member.value;
    if (!is_section(keys_, path)) {
      const std::string likely = find_likely(candidates_, path);
      const auto question = likely.empty() ? "" : fmt::format("; did you mean {}?", likely);
      found.push_back({path, "takes no effect: no key of this name is known here" + question,
                       value.line, value.column});
    } else if (const auto* inner = std::get_if<JsonValue::Members>(&value.value)) {
      look(*inner, path);
    } else {
      found.push_back(
          {path, fmt::format("takes no effect: it must be an object, and is {}", value.kind()),
           value.line, value.column});
    }
  }

  const Names keys_ = known_keys();
  const Names candidates_ = with_sections(keys_);
};

}  // namespace

std::vector<UnknownKey> find_unknown_keys(const JsonValue& root) {
  Search search;
  if (const auto* members = std::get_if<JsonValue::Members>(&root.value)) search.look(*members, "");
  return std::move(search.found);
}

}  // namespace straightway::cufile
