#pragma once
// Texts, words and errors between C++ and Python.

#include <nanobind/nanobind.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "straightway/result.hpp"
#include "straightway/settings.hpp"

namespace straightway::python {

// File names are bytes: those that are not UTF-8 become surrogates, as os.fsdecode makes them.
nanobind::object to_text(std::string_view text);

// Raises the Python exception that straightway._errors makes of it.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}
inline void value_or_raise(Result<void> result) {
  if (!result) raise(result.error());
}

inline constexpr std::array all_directions = {Direction::read, Direction::write};
inline constexpr std::array all_policies = {Policy::automatic, Policy::direct, Policy::staged};
inline constexpr std::array all_caches = {Cache::automatic, Cache::keep, Cache::drop,
                                          Cache::bypass};
inline constexpr std::array all_demands = {Demand::any, Demand::observed};
inline constexpr std::array all_syncs = {Sync::none, Sync::data, Sync::full};

[[noreturn]] void raise_unknown_word(const char* name, nanobind::handle object,
                                     const std::string& known);

// One of an enumeration's words; ValueError names the others.
template <class T, std::size_t N>
T to_word(const char* name, nanobind::handle object, const std::array<T, N>& all) {
  std::string known;
  const bool is_text = PyUnicode_Check(object.ptr());
  for (const T word : all) {
    if (is_text && PyUnicode_CompareWithASCIIString(object.ptr(), to_string(word)) == 0) {
      return word;
    }
    known += (known.empty() ? "'" : ", '") + std::string(to_string(word)) + "'";
  }
  raise_unknown_word(name, object, known);
}

// None: not given.
template <class T, std::size_t N>
std::optional<T> to_optional_word(const char* name, nanobind::handle object,
                                  const std::array<T, N>& all) {
  if (object.is_none()) return std::nullopt;
  return to_word(name, object, all);
}

}  // namespace straightway::python
