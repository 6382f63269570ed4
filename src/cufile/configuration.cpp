#include "cufile/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cufile/json_text.hpp"
#include "cufile/unknown_keys.hpp"
#include "os/system_text.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t file_limit_bytes = 4 << 20;

// "a.b.c" below the root; null where any of it is missing.
const JsonValue* find_path(const JsonValue& root, std::string_view path) {
  const JsonValue* at = &root;
  while (at != nullptr && !path.empty()) at = at->find(os::take_field(path, '.'));
  return at;
}

const JsonValue* find_key(const JsonValue& root, const KeyInfo& key) {
  if (const JsonValue* found = find_path(root, key.full_name())) return found;
  std::string_view aliases = key.alias;
  while (!aliases.empty()) {
    if (const JsonValue* found = find_path(root, os::take_field(aliases, ' '))) return found;
  }
  return nullptr;
}

template <class T>
std::optional<KeyValue> list_of(const JsonValue::List& list) {
  std::vector<T> values;
  for (const JsonValue& entry : list) {
    const auto* value = std::get_if<T>(&entry.value);
    if (value == nullptr) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

// The value as the kind that the key wants; none where it is of another.
std::optional<KeyValue> convert(const KeyInfo& key, const JsonValue& json) {
  if (const auto* yes = std::get_if<bool>(&json.value)) return *yes;
  if (const auto* whole = std::get_if<std::int64_t>(&json.value)) return *whole;
  if (const auto* text = std::get_if<std::string>(&json.value)) return *text;
  if (const auto* members = std::get_if<JsonValue::Members>(&json.value)) {
    Texts names;
    for (const auto& [name, value] : *members) names.push_back(name);
    return names;
  }
  const auto* list = std::get_if<JsonValue::List>(&json.value);
  if (list == nullptr) return std::nullopt;
  return std::holds_alternative<Numbers>(key.standard) ? list_of<std::int64_t>(*list)
                                                       : list_of<std::string>(*list);
}

const char* why_no_effect(Effect effect) {
  switch (effect) {
    case Effect::vendor:
      return "it matters only where the vendor's library does the direct I/O";
    case Effect::ours:
      return "Straightway's own settings decide that here";
    default:
      return "nothing here depends on it";
  }
}

// "warn" is written "WARN".
std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

template <class T, class Value>
void fill(Setting<T>& setting, const Setting<KeyValue>& from) {
  setting = {static_cast<T>(std::get<Value>(from.value)), from.origin};
}

}  // namespace

Configuration::Configuration() {
  for (const KeyInfo& key : all_keys()) {
    values_[static_cast<std::size_t>(key.key)] = {key.standard, Origin::built_in};
  }
}

void Configuration::set(Key key, KeyValue value, Origin origin) {
  auto& setting = values_[static_cast<std::size_t>(key)];
  if (setting.origin >= origin) setting = {std::move(value), origin};
}

void Configuration::take(const KeyInfo& key, const JsonValue& json) {
  const auto remark = [&](const std::string& why) {
    remarks_.push_back({true, key.full_name(),
                        fmt::format("{}; {} is used", why, to_string(key.standard)),
                        fmt::format("{}:{}:{}", file_, json.line, json.column)});
  };
  auto value = convert(key, json);
  if (!value) return remark(fmt::format("{}, and is {}", wrong_kind(key), json.kind()));
  if (key.key == Key::logging_level && std::holds_alternative<std::string>(*value)) {
    value = upper(std::get<std::string>(*value));
  }
  if (auto why = misfit(key, *value); !why.empty()) {
    return remark(fmt::format("{}, and is {}", why, to_string(*value)));
  }
  set(key.key, std::move(*value), Origin::file);
}

Result<void> Configuration::read_file(std::string_view text, const std::string& name) {
  auto json = read_json(text, name);
  if (!json) return json.error();
  file_ = name;
  if (!std::holds_alternative<JsonValue::Members>(json->value)) {
    return Error{.kind = ErrorKind::invalid_argument,
                 .attempted = "read",
                 .path = name,
                 .offset = {},
                 .why = fmt::format("{}:{}:{}: expected an object, found {}", name, json->line,
                                    json->column, json->kind()),
                 .advice = "see the shipped cufile.json"};
  }
  for (const KeyInfo& key : all_keys()) {
    if (const JsonValue* found = find_key(*json, key)) take(key, *found);
  }
  for (UnknownKey& unknown : find_unknown_keys(*json)) {
    remarks_.push_back({.key = std::move(unknown.name),
                        .what = std::move(unknown.what),
                        .place = fmt::format("{}:{}:{}", file_, unknown.line, unknown.column),
                        .unknown = true});
  }
  return {};
}

Result<void> Configuration::read_environment(const Environment& environment) {
  for (const KeyInfo& key : all_keys()) {
    if (key.variable == nullptr) continue;
    const auto text = environment(key.variable);
    if (!text) continue;
    auto value =
        parse_variable(key, key.key == Key::logging_level ? upper(*text) : std::string(*text));
    if (!value) return value.error();
    set(key.key, std::move(*value), Origin::environment);
  }
  if (const auto path = environment("CUFILE_LOGFILE_PATH"); path && log_path.empty()) {
    log_path = *path;
    log_switched_off = path->empty();
  }
  return {};
}

void Configuration::remark_effects() {
  for (const KeyInfo& key : all_keys()) {
    const auto& setting = get(key.key);
    if (setting.value == key.standard || setting.origin == Origin::built_in) continue;
    if (key.effect == Effect::acts || key.effect == Effect::counts) continue;
    remarks_.push_back(
        {.key = key.full_name(),
         .what = fmt::format("= {} ({}) takes no effect: {}", to_string(setting.value),
                             straightway::to_string(setting.origin), why_no_effect(key.effect)),
         .origin = setting.origin});
  }
}

CufileSettings Configuration::layer() const {
  CufileSettings settings;
  const auto count = [this](Setting<std::uint64_t>& to, Key key) {
    fill<std::uint64_t, std::int64_t>(to, get(key));
  };
  const auto yes = [this](Setting<bool>& to, Key key) { fill<bool, bool>(to, get(key)); };
  yes(settings.parallel_io, Key::parallel_io);
  count(settings.max_io_threads, Key::max_io_threads);
  count(settings.max_io_queue_depth, Key::max_io_queue_depth);
  count(settings.min_io_threshold_size_kb, Key::min_io_threshold_size_kb);
  count(settings.max_request_parallelism, Key::max_request_parallelism);
  count(settings.max_direct_io_size_kb, Key::max_direct_io_size_kb);
  yes(settings.allow_compat_mode, Key::allow_compat_mode);
  yes(settings.force_compat_mode, Key::force_compat_mode);
  if (flag(Key::vanilla_posix_io_mode)) yes(settings.force_compat_mode, Key::vanilla_posix_io_mode);
  yes(settings.use_pci_p2pdma, Key::use_pci_p2pdma);
  return settings;
}

FoundFile find_file(const Configuration::Environment& environment, const std::string& root) {
  std::vector<std::string> paths;
  if (const auto named = environment("CUFILE_ENV_PATH_JSON"); named && !named->empty()) {
    paths.push_back(*named);
  }
  paths.push_back(root + "/etc/cufile.json");
  paths.push_back(root + "/usr/local/cuda/gds/cufile.json");
  for (const std::string& path : paths) {
    if (auto text = os::read_text(path, file_limit_bytes)) return {path, std::move(*text)};
  }
  return {};
}

Result<Configuration> load_configuration(const Configuration::Environment& environment,
                                         Configuration start, const std::string& root) {
  const FoundFile found = find_file(environment, root);
  if (!found.path.empty()) {
    if (auto read = start.read_file(found.text, found.path); !read) return read.error();
  }
  if (auto read = start.read_environment(environment); !read) return read.error();
  start.remark_effects();
  return start;
}

}  // namespace straightway::cufile
