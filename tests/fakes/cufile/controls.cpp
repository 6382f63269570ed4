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

void fake_cufile_has_p2pdma(int how) {
  const Lock lock(state().mutex);
  state().has_p2pdma = how;
}

void fake_cufile_user_p2pdma(int on) {
  const Lock lock(state().mutex);
  state().user_p2pdma = state().p2pdma = on != 0;
  state().p2pdma_set = false;
}

int fake_cufile_p2pdma_is_on() {
  const Lock lock(state().mutex);
  return state().p2pdma ? 1 : 0;
}

std::uint64_t fake_cufile_p2pdma() {
  const Lock lock(state().mutex);
  return state().counters[0].p2pdma + state().counters[1].p2pdma;
}

void fake_cufile_answer_open(int code) {
  const Lock lock(state().mutex);
  state().open_answer = code;
}

void fake_cufile_version(int number) {
  const Lock lock(state().mutex);
  state().version = number;
}

void fake_cufile_copy_in_silence(int on) {
  const Lock lock(state().mutex);
  state().silent = on != 0;
}

void fake_cufile_lie(int on) {
  const Lock lock(state().mutex);
  state().lying = on != 0;
}

void fake_cufile_kernel_stats(const char* path, int counts) {
  const Lock lock(state().mutex);
  state().kernel_path = path == nullptr ? "" : path;
  state().kernel_counts = counts != 0;
  write_kernel_stats();
}

void fake_cufile_bar_kib(std::size_t kib) {
  const Lock lock(state().mutex);
  state().bar_kib = kib;
}

void fake_cufile_register_limit(std::size_t bytes) {
  const Lock lock(state().mutex);
  state().register_limit = bytes;
}

void fake_cufile_next_transfers(int count, ssize_t result, int errno_code) {
  const Lock lock(state().mutex);
  state().told_transfers = count;
  state().told_result = result;
  state().told_errno = errno_code;
  state().told_verbatim = false;
}

void fake_cufile_answer_transfers(int count, ssize_t result, int errno_code) {
  fake_cufile_next_transfers(count, result, errno_code);
  const Lock lock(state().mutex);
  state().told_verbatim = true;
}

void fake_cufile_answer_version(int code) {
  const Lock lock(state().mutex);
  state().version_answer = code;
}

void fake_cufile_answer_buffer(int code) {
  const Lock lock(state().mutex);
  state().buffer_answer = code;
}

void fake_cufile_hold(int on) {
  const Lock lock(state().mutex);
  state().holding = on != 0;
  state().let_past = state().tickets;
  state().let_go.notify_all();
}

void fake_cufile_let_go(int count) {
  const Lock lock(state().mutex);
  state().let_past += static_cast<std::uint64_t>(count);
  state().let_go.notify_all();
}

std::uint64_t fake_cufile_held() {
  const Lock lock(state().mutex);
  return state().held;
}

std::uint64_t fake_cufile_torn() {
  const Lock lock(state().mutex);
  return state().torn;
}

void fake_cufile_heal() {
  const Lock lock(state().mutex);
  state().told_transfers = 0;
  state().register_answer = success;
  state().direct = state().silent = state().lying = false;
  state().has_p2pdma = 0;
  state().user_p2pdma = state().p2pdma = state().p2pdma_set = false;
  state().open_answer = state().version_answer = state().buffer_answer = success;
  state().version = usual_version;
  state().holding = false;
  state().let_go.notify_all();
  state().torn = state().deregistrations = 0;
  state().kernel_path.clear();
  state().bar_kib = usual_bar_kib;
  state().register_limit = SIZE_MAX;
  state().most_registered = state().registered;
  state().calls = state().largest_call = state().registrations = 0;
}

std::uint64_t fake_cufile_calls() {
  const Lock lock(state().mutex);
  return state().calls;
}

std::uint64_t fake_cufile_largest_call() {
  const Lock lock(state().mutex);
  return state().largest_call;
}

std::uint64_t fake_cufile_most_registered() {
  const Lock lock(state().mutex);
  return state().most_registered;
}

std::uint64_t fake_cufile_registrations() {
  const Lock lock(state().mutex);
  return state().registrations;
}

std::uint64_t fake_cufile_deregistrations() {
  const Lock lock(state().mutex);
  return state().deregistrations;
}

std::uint64_t fake_cufile_nvfs() {
  const Lock lock(state().mutex);
  return state().counters[0].nvfs + state().counters[1].nvfs;
}

std::uint64_t fake_cufile_posix() {
  const Lock lock(state().mutex);
  return state().counters[0].posix + state().counters[1].posix;
}

const char* fake_cufile_caller() {
  const Lock lock(state().mutex);
  return state().caller.c_str();
}

std::uint64_t fake_cufile_foreign_answers() {
  const Lock lock(state().mutex);
  return state().foreign_answers;
}

ssize_t fake_cufile_inner_result() {
  const Lock lock(state().mutex);
  return state().inner_result;
}

int fake_cufile_loaded_after_init() {
  const Lock lock(state().mutex);
  return state().loaded_after_init ? 1 : 0;
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
