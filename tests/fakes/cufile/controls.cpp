// The tests' controls: fake_cufile.hpp says what each does.
#include "state.hpp"

using namespace fake;

#define FAKE_DECLARE(member, ...) \
  FAKE_EXPORT std::remove_pointer_t<std::add_pointer_t<__VA_ARGS__>> fake_cufile_##member;
FAKE_CUFILE_CONTROLS(FAKE_DECLARE)
#undef FAKE_DECLARE

void fake_cufile_answer_register(int code) {
  const Lock lock(state().mutex);
  state().register_answer = code;
}

void fake_cufile_direct(int on) {
  const Lock lock(state().mutex);
  state().direct = on != 0;
}

void fake_cufile_next_transfers(int count, ssize_t result, int errno_code) {
  const Lock lock(state().mutex);
  state().told_transfers = count;
  state().told_result = result;
  state().told_errno = errno_code;
}

void fake_cufile_heal() {
  const Lock lock(state().mutex);
  state().told_transfers = 0;
  state().register_answer = success;
  state().direct = false;
}

std::uint64_t fake_cufile_nvfs() {
  const Lock lock(state().mutex);
  return state().nvfs;
}

std::uint64_t fake_cufile_posix() {
  const Lock lock(state().mutex);
  return state().posix;
}

std::uint64_t fake_cufile_handles() {
  const Lock lock(state().mutex);
  return state().handles.size();
}

std::uint64_t fake_cufile_buffers() {
  const Lock lock(state().mutex);
  return state().buffers.size();
}

std::uint64_t fake_cufile_open_count() {
  const Lock lock(state().mutex);
  return state().open_count;
}
