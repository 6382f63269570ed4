#include "plan/settings.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <utility>

namespace straightway::plan {
namespace {

constexpr std::uint64_t largest_size_bytes = (std::uint64_t{1} << 63) - 1;
constexpr std::size_t longest_quote = 64;
constexpr const char* size_form =
    "write a number of bytes such as 4194304, or with a power of 1024: 64K, 4M, 4MiB, 1G";

// Text from the environment as it may stand in a message: bounded and printable.
std::string quoted(std::string_view text) {
  std::string quote = "'";
  for (const char c : text.substr(0, longest_quote)) {
    quote += c >= ' ' && c != '\x7f' ? c : '?';
  }
  return quote + (text.size() > longest_quote ? "...'" : "'");
}

Error bad_value(std::string_view name, std::string_view text, std::string why, std::string advice) {
  return {.kind = ErrorKind::invalid_argument,
          .attempted = fmt::format("set {} to {}", name, quoted(text)),
          .path = {},
          .offset = {},
          .why = std::move(why),
          .advice = std::move(advice)};
}

// Letters only, without the locale: a Turkish "I" must not change what "direct" means.
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

struct Number {
  std::uint64_t value = 0;
  std::string_view rest;
  std::errc error{};
};

// Decimal digits at the front; a sign or a blank is none.
Number leading_number(std::string_view text) {
  Number number;
  const char* end = text.end();
  const auto [stop, error] = std::from_chars(text.begin(), text.end(), number.value);
  number.error = error;
  number.rest = std::string_view(stop, static_cast<std::size_t>(end - stop));
  return number;
}

// The power of two of a unit, -1 for none. "KiB", "KB" and "K" are the same.
int unit_shift(std::string_view unit) {
  if (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::string word = lower(unit);
  if (unit.empty()) return 0;
  if (word == "b") return 0;
  const std::size_t found = std::string_view("kmgtp").find(word.front());
  const std::string_view tail = std::string_view(word).substr(1);
  if (found == std::string_view::npos || (!tail.empty() && tail != "b" && tail != "ib")) return -1;
  return 10 * (static_cast<int>(found) + 1);
}

Result<std::uint64_t> parse_positive_size(std::string_view name, std::string_view text) {
  Result<std::uint64_t> size = parse_size(name, text);
  if (size && *size == 0) return bad_value(name, text, "it must be more than zero", size_form);
  return size;
}

// Enough for two pieces of the ring on a machine with pages of 64 KiB.
constexpr std::uint64_t least_pinned_bytes = std::uint64_t{1} << 20;  // one piece of the ring

Result<std::uint64_t> parse_pinned_bytes(std::string_view name, std::string_view text) {
  Result<std::uint64_t> size = parse_size(name, text);
  if (size && *size < least_pinned_bytes) {
    return bad_value(name, text, "the pinned ring needs at least 1 MiB", size_form);
  }
  return size;
}

template <class T>
struct Word {
  const char* text;
  T value;
};

template <class T>
Result<T> parse_word(std::string_view name, std::string_view text, std::span<const Word<T>> words,
                     const char* what, const char* form) {
  const std::string given = lower(text);
  for (const Word<T>& word : words) {
    if (given == word.text) return word.value;
  }
  return bad_value(name, text, fmt::format("that is no {}", what), form);
}

// Looks one variable up, and takes its value unless a higher rank holds one. What it says must make
// sense in any case, or a typing error would come to light only when the override goes away.
template <class T, class Parse>
Result<void> take(Setting<T>& setting, const Environment& environment, const char* name,
                  const Parse& parse) {
  const std::optional<std::string> text = environment(name);
  if (!text) return {};
  Result<T> value = parse(name, *text);
  if (!value) return std::move(value.error());
  if (setting.origin <= Origin::api) return {};
  setting = {*value, Origin::environment};
  return {};
}

constexpr std::uint64_t most_threads = 1024;

// A relative path would mean another library in another working directory.
Result<std::string> parse_vendor_library(std::string_view name, std::string_view text) {
  if (text.empty() || text == "none" || text.front() == '/') return std::string(text);
  return bad_value(name, text, "that is no absolute path",
                   "write the path of the vendor's libcufile.so.0, or none to leave it alone");
}

Result<std::uint64_t> parse_own_threads(std::string_view name, std::string_view text) {
  return parse_count(name, text, 0, most_threads);
}

Result<std::uint64_t> parse_front_threads(std::string_view name, std::string_view text) {
  return parse_count(name, text, 1, std::numeric_limits<std::int32_t>::max());
}

// Runs the steps in turn until one fails.
template <class... Steps>
Result<void> all_of(const Steps&... steps) {
  Result<void> result;
  static_cast<void>(((result = steps()).ok() && ...));
  return result;
}

Result<void> read_own(Settings& settings, const Environment& environment) {
  const auto one = [&](auto& setting, const char* name, auto parse) {
    return
        [&environment, &setting, name, parse] { return take(setting, environment, name, parse); };
  };
  return all_of(one(settings.policy, "STRAIGHTWAY_POLICY", parse_policy),
                one(settings.cache, "STRAIGHTWAY_CACHE", parse_cache),
                one(settings.evidence, "STRAIGHTWAY_EVIDENCE", parse_demand),
                one(settings.threads, "STRAIGHTWAY_THREADS", parse_own_threads),
                one(settings.pinned_bytes, "STRAIGHTWAY_PINNED_BYTES", parse_pinned_bytes),
                one(settings.pin_bytes, "STRAIGHTWAY_PIN_BYTES", parse_size),
                one(settings.ledger, "STRAIGHTWAY_LEDGER", parse_bool),
                one(settings.vendor_library, "STRAIGHTWAY_VENDOR_LIBRARY", parse_vendor_library));
}

// The thread count has two names; different values in them are a contradiction.
Result<void> read_front_threads(FrontSettings& front, const Environment& environment) {
  constexpr const char* name = "KVIKIO_NTHREADS";
  constexpr const char* alias = "KVIKIO_NUM_THREADS";
  Setting<std::uint64_t> by_name;
  Setting<std::uint64_t> by_alias;
  for (auto [setting, variable] : {std::pair{&by_name, name}, std::pair{&by_alias, alias}}) {
    Result<void> taken = take(*setting, environment, variable, parse_front_threads);
    if (!taken) return taken;
  }
  const bool both = by_name.origin == by_alias.origin && by_name.origin == Origin::environment;
  if (both && by_name.value != by_alias.value) {
    return bad_value(alias, std::to_string(by_alias.value),
                     fmt::format("{} is {}, and both name the same setting", name, by_name.value),
                     "set one of them, or both alike");
  }
  const Setting<std::uint64_t>& given = by_name.origin == Origin::environment ? by_name : by_alias;
  if (given.origin == Origin::environment && front.threads.origin > Origin::api) {
    front.threads = given;
  }
  return {};
}

Result<void> read_layers(Settings& settings, const Environment& environment) {
  FrontSettings& front = settings.front;
  CufileSettings& cufile = settings.cufile;
  const auto one = [&](auto& setting, const char* name, auto parse) {
    return
        [&environment, &setting, name, parse] { return take(setting, environment, name, parse); };
  };
  return all_of(
      one(front.compat_mode, "KVIKIO_COMPAT_MODE", parse_compat_mode),
      [&] { return read_front_threads(front, environment); },
      one(front.task_size_bytes, "KVIKIO_TASK_SIZE", parse_positive_size),
      one(front.gds_threshold_bytes, "KVIKIO_GDS_THRESHOLD", parse_size),
      one(cufile.force_compat_mode, "CUFILE_FORCE_COMPAT_MODE", parse_bool),
      one(cufile.allow_compat_mode, "CUFILE_ALLOW_COMPAT_MODE", parse_bool),
      one(cufile.use_pci_p2pdma, "CUFILE_USE_PCIP2PDMA", parse_bool));
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view name, std::string_view text) {
  const Number number = leading_number(text);
  if (number.error == std::errc::invalid_argument) {
    return bad_value(name, text, "that is no size", size_form);
  }
  const int shift = unit_shift(number.rest);
  if (shift < 0) return bad_value(name, text, "that is no size", size_form);
  const bool fits = number.error == std::errc{} && number.value <= largest_size_bytes >> shift;
  if (!fits) return bad_value(name, text, "that is 8 EiB or more, larger than any file", size_form);
  return number.value << shift;
}

Result<bool> parse_bool(std::string_view name, std::string_view text) {
  static constexpr std::array<Word<bool>, 8> words = {{{"1", true},
                                                       {"true", true},
                                                       {"yes", true},
                                                       {"on", true},
                                                       {"0", false},
                                                       {"false", false},
                                                       {"no", false},
                                                       {"off", false}}};
  return parse_word<bool>(name, text, words, "yes or no",
                          "write 1, true, yes or on, or 0, false, no or off");
}

Result<std::uint64_t> parse_count(std::string_view name, std::string_view text, std::uint64_t least,
                                  std::uint64_t most) {
  const Number number = leading_number(text);
  if (number.error == std::errc::invalid_argument || !number.rest.empty()) {
    return bad_value(name, text, "that is no whole number",
                     fmt::format("write a number from {} to {}", least, most));
  }
  if (number.error != std::errc{} || number.value < least || number.value > most) {
    return bad_value(name, text, "that is out of range",
                     fmt::format("write a number from {} to {}", least, most));
  }
  return number.value;
}

Result<Policy> parse_policy(std::string_view name, std::string_view text) {
  static constexpr std::array<Word<Policy>, 3> words = {
      {{"auto", Policy::automatic}, {"direct", Policy::direct}, {"staged", Policy::staged}}};
  return parse_word<Policy>(name, text, words, "policy", "write auto, direct or staged");
}

Result<Cache> parse_cache(std::string_view name, std::string_view text) {
  static constexpr std::array<Word<Cache>, 4> words = {{{"auto", Cache::automatic},
                                                        {"keep", Cache::keep},
                                                        {"drop", Cache::drop},
                                                        {"bypass", Cache::bypass}}};
  return parse_word<Cache>(name, text, words, "cache behaviour",
                           "write auto, keep, drop or bypass");
}

Result<Demand> parse_demand(std::string_view name, std::string_view text) {
  static constexpr std::array<Word<Demand>, 2> words = {
      {{"any", Demand::any}, {"observed", Demand::observed}}};
  return parse_word<Demand>(name, text, words, "demand on evidence", "write any or observed");
}

Result<CompatMode> parse_compat_mode(std::string_view name, std::string_view text) {
  static constexpr std::array<Word<CompatMode>, 9> words = {{{"on", CompatMode::on},
                                                             {"true", CompatMode::on},
                                                             {"yes", CompatMode::on},
                                                             {"1", CompatMode::on},
                                                             {"off", CompatMode::off},
                                                             {"false", CompatMode::off},
                                                             {"no", CompatMode::off},
                                                             {"0", CompatMode::off},
                                                             {"auto", CompatMode::automatic}}};
  return parse_word<CompatMode>(name, text, words, "compatibility mode", "write ON, OFF or AUTO");
}

Result<void> read_environment(Settings& settings, const Environment& environment) {
  Result<void> own = read_own(settings, environment);
  return own ? read_layers(settings, environment) : own;
}

}  // namespace straightway::plan
