// A user-space file system whose functions answer anything: more bytes than were asked for, any
// negative number, nothing, an exception; which call the library again, and which are not there.
// Nothing is written beside the memory, and no more bytes are reported than were asked for.

#include <array>
#include <limits>
#include <stdexcept>

#include "tests/cufile/library.hpp"
#include "tests/fuzz/guarded_memory.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t memory_bytes = 1 << 16;

Library& library() {
  static Library made;
  return made;
}

// What the functions do next. They may run on a thread of the library, one transfer at a time.
struct Script {
  fuzz::Input* input;
  void* handle = nullptr;
  int depth = 0;
};

ssize_t answer(Script& script, std::size_t size) {
  constexpr std::array<ssize_t, 8> wrong = {-1,
                                            -5,
                                            -4096,
                                            -5027,
                                            std::numeric_limits<ssize_t>::min(),
                                            std::numeric_limits<ssize_t>::max(),
                                            0,
                                            -100'000};
  fuzz::Input& in = *script.input;
  const std::uint8_t kind = in.byte();
  if (kind < 160) return static_cast<ssize_t>(size);
  if (kind < 200) return static_cast<ssize_t>(size / 2);
  if (kind < 210) return static_cast<ssize_t>(size) + 1;
  if (kind < 220) throw std::runtime_error("of a file system");
  errno = in.byte();
  return wrong[kind % wrong.size()];
}

// Calls from inside a call.
void call_again(Script& script) {
  if (script.depth > 2) return;
  ++script.depth;
  char byte = 0;
  switch (script.input->pick(12)) {
    case 0:
      library().cuFileRead(script.handle, &byte, 1, 0, 0);
      break;
    case 1:
      library().cuFileHandleDeregister(script.handle);
      break;
    case 2:
      library().cuFileDriverOpen();
      break;
    default:
      break;
  }
  --script.depth;
}

Script* script_of(const void* handle) { return static_cast<Script*>(const_cast<void*>(handle)); }

ssize_t read_some(const void* handle, char* to, std::size_t size, off_t, const abi::RdmaInfo*) {
  Script& script = *script_of(handle);
  call_again(script);
  const ssize_t moved = answer(script, size);
  if (moved > 0) std::memset(to, 7, std::min(static_cast<std::size_t>(moved), size));
  return moved;
}

ssize_t write_some(const void* handle, const char* from, std::size_t size, off_t,
                   const abi::RdmaInfo*) {
  Script& script = *script_of(handle);
  call_again(script);
  fuzz::require(std::count(from, from + size, 'x') <= static_cast<std::ptrdiff_t>(size));
  return answer(script, size);
}

class World {
 public:
  explicit World(fuzz::Input& input) : in(input), script{&input} {
    abi::FileOperations operations{nullptr, nullptr, nullptr, !in.seldom(8) ? read_some : nullptr,
                                   !in.seldom(8) ? write_some : nullptr};
    const bool none = in.seldom(16);
    abi::Descriptor descriptor{abi::userspace_fs, {}, none ? nullptr : &operations};
    descriptor.pointer = &script;
    const auto made = library().cuFileHandleRegister(&script.handle, &descriptor);
    fuzz::require(none == (made.code != 0));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    library().cuFileHandleDeregister(script.handle);
    while (library().cuFileUseCount() > 0) library().cuFileDriverClose_v2();
    memory.check();
  }
  void next();

 private:
  void move(std::size_t size, off_t offset);
  void move_vector(off_t offset);
  void move_batch(std::size_t size, off_t offset);

  fuzz::Input& in;
  Script script;
  std::array<char, memory_bytes + 2 * fuzz::GuardedMemory::strip> bytes{};
  fuzz::GuardedMemory memory{bytes};
};

void World::move(std::size_t size, off_t offset) {
  const ssize_t moved = in.flag()
                            ? library().cuFileRead(script.handle, memory.data(), size, offset, 0)
                            : library().cuFileWrite(script.handle, memory.data(), size, offset, 0);
  fuzz::require(moved <= static_cast<ssize_t>(size));
}

void World::move_vector(off_t offset) {
  std::array<abi::Piece, 3> pieces{};
  std::size_t whole = 0;
  for (abi::Piece& piece : pieces) {
    piece = {memory.data() + in.byte(), in.byte()};
    whole += piece.size;
  }
  const ssize_t moved =
      in.flag() ? library().cuFileReadv(script.handle, pieces.data(), pieces.size(), offset, 0)
                : library().cuFileWritev(script.handle, pieces.data(), pieces.size(), offset, 0);
  fuzz::require(moved <= static_cast<ssize_t>(whole));
}

// One entry at a time: the script has one reader.
void World::move_batch(std::size_t size, off_t offset) {
  void* batch = nullptr;
  if (library().cuFileBatchIOSetUp(&batch, 1).code != 0) return;
  abi::BatchEntry entry{abi::batch_mode, memory.data(), offset, 0, size,
                        script.handle,   in.byte() & 1, nullptr};
  if (library().cuFileBatchIOSubmit(batch, 1, &entry, 0).code == 0) {
    abi::BatchEvent event{};
    unsigned count = 1;
    fuzz::require(library().cuFileBatchIOGetStatus(batch, 1, &count, &event, nullptr).code == 0);
    fuzz::require(count == 1);
    fuzz::require(event.status != abi::complete || event.result <= size);
  }
  library().cuFileBatchIODestroy(batch);
}

void World::next() {
  const std::size_t size = (in.byte() << 8 | in.byte()) % (memory_bytes + 1);
  const off_t offset = !in.seldom(4) ? in.byte() : static_cast<off_t>(in.number());
  switch (in.pick(3)) {
    case 0:
      return move(size, offset);
    case 1:
      return move_vector(offset);
    default:
      return move_batch(size, offset);
  }
}

}  // namespace
}  // namespace straightway::cufile

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ::setenv("CUFILE_ENV_PATH_JSON", "/no/such/cufile.json", 1);
  ::setenv("STRAIGHTWAY_LEDGER", "0", 1);
  straightway::fuzz::Input input(data, size);
  straightway::cufile::World world(input);
  while (!input.empty()) world.next();
  return 0;
}
