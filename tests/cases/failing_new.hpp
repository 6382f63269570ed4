#pragma once
// Memory runs out: at each allocation in turn, of the caller's thread or of another. To be included
// once in a program, whose operator new it replaces. Only what the program's own code asks for
// fails, not what the libraries beside it do, such as the simulated GPU.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>

namespace straightway::tests {

enum class Whose { nobodys, the_callers, the_others };

inline std::atomic<Whose> failing{Whose::nobodys};
inline std::atomic<long> allocations_left{0};
inline thread_local bool is_caller = false;

extern "C" const char __executable_start;
extern "C" const char etext;

inline bool fails(const void* asked_from) {
  const auto whose = failing.load(std::memory_order_relaxed);
  if (whose == Whose::nobodys || (whose == Whose::the_callers) != is_caller) return false;
  const auto from = reinterpret_cast<std::uintptr_t>(asked_from);
  if (from < reinterpret_cast<std::uintptr_t>(&__executable_start) ||
      from >= reinterpret_cast<std::uintptr_t>(&etext)) {
    return false;
  }
  return allocations_left.fetch_sub(1) == 0;
}

// Nothing where the allocation failed on the caller's thread and came out as an exception.
template <class Body>
auto fail_one(Whose whose, long number, Body body) {
  is_caller = true;
  allocations_left = number;
  failing = whose;
  std::optional<decltype(body())> result;
  try {
    result.emplace(body());
  } catch (const std::bad_alloc&) {
  }
  failing = Whose::nobodys;
  return result;
}

inline bool none_failed() { return allocations_left.load() >= 0; }

}  // namespace straightway::tests

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (straightway::tests::fails(__builtin_return_address(0))) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
