// Batch, parameter and other calls of libcufile.so.0 in any order, with any arguments that a caller
// can give without handing over memory that it does not have. Nothing crashes or hangs, nothing is
// written beside the memory, and no more events come than were asked for.

#include <sys/types.h>

#include <array>
#include <iterator>

#include "tests/cufile/library.hpp"
#include "tests/fuzz/guarded_memory.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t memory_bytes = 1 << 18;
constexpr std::size_t file_bytes = 1 << 17;
constexpr std::size_t most_entries = 300;

// By this name ThreadSanitizer knows it (see the end of this file).
std::array<char, memory_bytes + 2 * fuzz::GuardedMemory::strip> callers_memory;

// What lives from one input to the next.
struct World {
  World() {
    ::setenv("CUFILE_ENV_PATH_JSON", folder.write("cufile.json", {'{', '}'}).c_str(), 1);
    ::setenv("STRAIGHTWAY_LEDGER", "0", 1);
    path = folder.write("data", tests::pattern(file_bytes));
  }
  tests::TempFolder folder;
  std::string path;
  Library library;
};

World& world() {
  static World made;
  return made;
}

class Calls {
 public:
  explicit Calls(fuzz::Input& input) : in(input), fd(::open(world().path.c_str(), O_RDWR)) {
    fuzz::require(fd >= 0);
    if (!in.seldom(8)) begin();
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    for (void* batch : batches) call.cuFileBatchIODestroy(batch);
    while (call.cuFileUseCount() > 0) call.cuFileDriverClose_v2();
    fuzz::require(::ftruncate(fd, file_bytes) == 0);
    ::close(fd);
    memory.check();
  }
  void next();

 private:
  void* any_batch() {
    if (!batches.empty() && !in.seldom(4)) return batches[in.pick(batches.size())];
    const std::size_t i = in.pick(batches.size() + 2);
    if (i < batches.size()) return batches[i];
    return i == batches.size() ? nullptr : reinterpret_cast<void*>(in.number());
  }
  void* any_handle() {
    if (!handles.empty() && !in.seldom(4)) return handles[in.pick(handles.size())];
    const std::size_t i = in.pick(handles.size() + 2);
    if (i < handles.size()) return handles[i];
    return i == handles.size() ? nullptr : reinterpret_cast<void*>(in.number());
  }
  // A place in the memory, and no more than lies behind it.
  struct Place {
    char* at;
    std::size_t size;
  };
  Place any_place() {
    const std::size_t begin = in.pick(64) * 4000;
    const auto size = static_cast<std::size_t>(in.number()) % (memory_bytes - begin + 1);
    return {memory.data() + begin, size};
  }
  // Not so far behind the end that a write would fill the disk.
  off_t any_offset(bool write) {
    const auto offset = static_cast<off_t>(in.number());
    return write && offset > 0 ? offset % static_cast<off_t>(2 * file_bytes) : offset;
  }

  // What most calls need to come further than their first check.
  void begin();
  abi::BatchEntry sound_entry();
  abi::BatchEntry any_entry();

  void register_any();
  void set_up();
  void submit();
  void get_status();
  void parameters();
  void slabs();
  void move();
  void move_vector();
  void move_queued();
  void driver();
  void statistics();

  fuzz::Input& in;
  const Library& call = world().library;
  int fd;
  fuzz::GuardedMemory memory{callers_memory};
  std::vector<void*> batches;
  std::vector<void*> handles;
};

void Calls::register_any() {
  if (in.flag()) {
    const Place place = any_place();
    call.cuFileBufRegister(in.flag() ? place.at : nullptr, place.size,
                           static_cast<int>(in.number()));
    if (in.flag()) call.cuFileBufDeregister(place.at);
    return;
  }
  const int type = in.flag() ? abi::opaque_fd : static_cast<int>(in.number());
  // No descriptor of somebody else, which would then be written to.
  constexpr std::array<int, 3> wrong = {-1, INT32_MAX, 1 << 20};
  abi::Descriptor descriptor{type, {in.flag() ? fd : wrong[in.pick(wrong.size())]}, nullptr};
  void* token = nullptr;
  if (call.cuFileHandleRegister(!in.seldom(8) ? &token : nullptr, &descriptor).code == 0) {
    handles.push_back(token);
  }
}

void Calls::set_up() {
  void* batch = nullptr;
  const auto count = static_cast<unsigned>(in.number());
  if (call.cuFileBatchIOSetUp(!in.seldom(16) ? &batch : nullptr, count).code == 0) {
    fuzz::require(count >= 1 && count <= 256);
    batches.push_back(batch);
  }
}

void Calls::begin() {
  abi::Descriptor descriptor{abi::opaque_fd, {fd}, nullptr};
  void* made = nullptr;
  fuzz::require(call.cuFileHandleRegister(&made, &descriptor).code == 0);
  handles.push_back(made);
  fuzz::require(call.cuFileBatchIOSetUp(&made, 64).code == 0);
  batches.push_back(made);
}

abi::BatchEntry Calls::sound_entry() {
  const Place place = any_place();
  const auto offset = static_cast<off_t>(in.byte()) * 1000;
  void* handle = handles.empty() ? nullptr : handles.front();
  return {abi::batch_mode, place.at, offset, 0, place.size, handle, in.byte() & 1, nullptr};
}

abi::BatchEntry Calls::any_entry() {
  abi::BatchEntry entry = sound_entry();
  switch (in.pick(8)) {
    case 0:
      entry.mode = static_cast<int>(in.number());
      break;
    case 1:
      entry.memory = nullptr;
      break;
    case 2:
      entry.memory_offset = -1 - static_cast<off_t>(in.byte());
      break;
    case 3:
      entry.handle = any_handle();
      break;
    case 4:
      entry.opcode = static_cast<int>(in.number());
      break;
    case 5:
      entry.file_offset = any_offset(entry.opcode != abi::opcode_read);
      break;
    default:
      break;
  }
  return entry;
}

void Calls::submit() {
  const bool sound = !in.seldom(4);
  std::vector<abi::BatchEntry> entries(in.pick(12) + (in.seldom(32) ? most_entries : 0));
  for (abi::BatchEntry& entry : entries) entry = sound ? sound_entry() : any_entry();
  void* batch = sound && !batches.empty() ? batches.front() : any_batch();
  const bool none = in.seldom(16);
  const auto count = none ? static_cast<unsigned>(in.number()) : entries.size();
  call.cuFileBatchIOSubmit(batch, static_cast<unsigned>(count),
                           none || entries.empty() ? nullptr : entries.data(),
                           static_cast<unsigned>(in.number()));
}

void Calls::get_status() {
  std::vector<abi::BatchEvent> events(most_entries);
  unsigned count = static_cast<unsigned>(in.number()) % most_entries;
  const unsigned asked = count;
  timespec timeout{0, static_cast<long>(in.byte()) * 1000};
  if (in.seldom(16)) timeout = {-1, static_cast<long>(in.number())};
  const auto least = static_cast<unsigned>(!in.seldom(4) ? in.pick(4) : in.number());
  void* batch = in.flag() && !batches.empty() ? batches.front() : any_batch();
  const auto code = call.cuFileBatchIOGetStatus(batch, least, !in.seldom(16) ? &count : nullptr,
                                                !in.seldom(16) ? events.data() : nullptr,
                                                !in.seldom(4) ? &timeout : nullptr);
  if (code.code == 0) fuzz::require(count <= asked);
}

void Calls::parameters() {
  const auto which = !in.seldom(8) ? static_cast<int>(in.pick(16)) : static_cast<int>(in.number());
  std::size_t least = 0;
  std::size_t most = 0;
  bool yes = false;
  switch (in.pick(7)) {
    case 0:
      call.cuFileSetParameterSizeT(which, static_cast<std::size_t>(in.number()));
      break;
    case 1:
      call.cuFileGetParameterSizeT(which, in.flag() ? &least : nullptr);
      break;
    case 2:
      call.cuFileSetParameterBool(which, in.flag());
      break;
    case 3:
      call.cuFileGetParameterBool(which, in.flag() ? &yes : nullptr);
      break;
    case 4: {
      // No log file beside the folder: its name is ours.
      const std::string text = which == 1 || which == 2 ? "" : in.text(200);
      call.cuFileSetParameterString(which, !in.seldom(8) ? text.c_str() : nullptr);
      break;
    }
    case 5: {
      char text[64];
      const auto size = in.flag() ? static_cast<int>(in.pick(65)) : -static_cast<int>(in.pick(99));
      call.cuFileGetParameterString(which, !in.seldom(8) ? text : nullptr, size);
      break;
    }
    default:
      call.cuFileGetParameterMinMaxValue(which, in.flag() ? &least : nullptr,
                                         in.flag() ? &most : nullptr);
  }
}

void Calls::slabs() {
  std::array<std::size_t, 8> sizes{};
  std::array<std::size_t, 8> counts{};
  for (auto& size : sizes) size = static_cast<std::size_t>(in.number());
  for (auto& count : counts) count = static_cast<std::size_t>(in.number());
  const auto size = !in.seldom(8) ? static_cast<int>(in.pick(9)) : -static_cast<int>(in.byte());
  auto* a = !in.seldom(8) ? sizes.data() : nullptr;
  auto* b = !in.seldom(8) ? counts.data() : nullptr;
  switch (in.pick(4)) {
    case 0:
      call.cuFileSetParameterPosixPoolSlabArray(a, b, size);
      break;
    case 1:
      call.cuFileGetParameterPosixPoolSlabArray(a, b, size);
      break;
    case 2:
      call.cuFileSetParameterGpuBounceBufferSlabArray(a, b, size);
      break;
    default:
      call.cuFileGetParameterGpuBounceBufferSlabArray(a, b, size);
  }
}

void Calls::move() {
  const Place place = any_place();
  const bool write = in.flag();
  const off_t offset = any_offset(write);
  const off_t inside = !in.seldom(8) ? 0 : -1 - static_cast<off_t>(in.byte());
  const ssize_t moved = write ? call.cuFileWrite(any_handle(), place.at, place.size, offset, inside)
                              : call.cuFileRead(any_handle(), place.at, place.size, offset, inside);
  fuzz::require(moved <= static_cast<ssize_t>(place.size));
}

void Calls::move_vector() {
  std::vector<abi::Piece> pieces(in.pick(20));
  std::size_t whole = 0;
  for (abi::Piece& piece : pieces) {
    const Place place = any_place();
    piece = {place.at, place.size};
    whole += place.size;
  }
  const bool write = in.flag();
  const off_t offset = any_offset(write);
  const auto flags = static_cast<unsigned>(in.number());
  const bool none = in.seldom(16);
  const auto* at = none ? nullptr : pieces.data();
  const auto count = none ? static_cast<std::size_t>(in.number()) : pieces.size();
  const ssize_t moved = write ? call.cuFileWritev(any_handle(), at, count, offset, flags)
                              : call.cuFileReadv(any_handle(), at, count, offset, flags);
  fuzz::require(moved <= static_cast<ssize_t>(whole));
}

// Without a driver there is no stream, so that the transfer is over when the call returns.
void Calls::move_queued() {
  if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) return;
  const Place place = any_place();
  std::size_t size = place.size;
  const bool write = in.flag();
  off_t offset = any_offset(write);
  off_t inside = !in.seldom(8) ? 0 : -1 - static_cast<off_t>(in.byte());
  ssize_t moved = 0;
  void* stream = in.flag() ? nullptr : reinterpret_cast<void*>(in.number());
  if (in.flag()) call.cuFileStreamRegister(stream, static_cast<unsigned>(in.number()));
  const auto queue = write ? call.cuFileWriteAsync : call.cuFileReadAsync;
  queue(any_handle(), !in.seldom(8) ? place.at : nullptr, !in.seldom(16) ? &size : nullptr,
        !in.seldom(16) ? &offset : nullptr, !in.seldom(16) ? &inside : nullptr,
        !in.seldom(16) ? &moved : nullptr, stream);
  if (in.flag()) call.cuFileStreamDeregister(stream);
  fuzz::require(moved <= static_cast<ssize_t>(place.size));
}

void Calls::driver() {
  abi::Properties properties{};
  const auto number = static_cast<std::size_t>(in.number());
  switch (in.pick(9)) {
    case 0:
      call.cuFileDriverOpen();
      break;
    case 1:
      call.cuFileDriverClose_v2();
      break;
    case 2:
      call.cuFileDriverGetProperties(in.flag() ? &properties : nullptr);
      break;
    case 3:
      call.cuFileDriverSetPollMode(in.flag(), number);
      break;
    case 4:
      call.cuFileDriverSetMaxDirectIOSize(number);
      break;
    case 5:
      call.cuFileDriverSetMaxCacheSize(number);
      break;
    case 6:
      call.cuFileDriverSetMaxPinnedMemSize(number);
      break;
    case 7:
      call.cuFileHandleDeregister(any_handle());
      break;
    default:
      call.cuFileDriverSetP2PFlags(static_cast<int>(number), static_cast<int>(in.number()));
  }
}

void Calls::statistics() {
  std::vector<char> out(8192);
  int level = 0;
  switch (in.pick(8)) {
    case 0:
      call.cuFileSetStatsLevel(static_cast<int>(in.number()));
      break;
    case 1:
      call.cuFileGetStatsLevel(in.flag() ? &level : nullptr);
      break;
    case 2:
      call.cuFileStatsStart();
      break;
    case 3:
      call.cuFileStatsStop();
      break;
    case 4:
      call.cuFileStatsReset();
      break;
    case 5:
      call.cuFileGetStatsL1(in.flag() ? out.data() : nullptr);
      break;
    case 6:
      call.cuFileGetStatsL2(in.flag() ? out.data() : nullptr);
      break;
    default:
      call.cuFileGetStatsL3(in.flag() ? out.data() : nullptr);
  }
}

void Calls::next() {
  constexpr void (Calls::* all[])() = {
      &Calls::register_any, &Calls::set_up, &Calls::submit,      &Calls::submit,
      &Calls::get_status,   &Calls::slabs,  &Calls::move_vector, &Calls::move,
      &Calls::move_queued,  &Calls::driver, &Calls::statistics,  &Calls::parameters};
  const std::size_t which = in.pick(std::size(all) + 2);
  if (which < std::size(all)) return (this->*all[which])();
  void* batch = any_batch();
  if (which == std::size(all)) {
    call.cuFileBatchIOCancel(batch);
    return;
  }
  call.cuFileBatchIODestroy(batch);
  std::erase(batches, batch);
}

}  // namespace
}  // namespace straightway::cufile

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  straightway::fuzz::Input input(data, size);
  straightway::cufile::Calls calls(input);
  while (!input.empty()) calls.next();
  return 0;
}

// Transfers that are under way at once may meet in the caller's memory here, which is for a caller
// to avoid. All other races are the library's.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:callers_memory\n"; }
