// Ends with transfers under way, in the way that its arguments name, with code 7 or an abort.
//   exit_program WHAT HOW FILE
// WHAT: idle, reading, thread, owned.  HOW: exit, quick_exit, return, throw, uncaught.

#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "straightway/file.hpp"

namespace sw = straightway;

namespace {

using Bytes = std::vector<char>;

// Drained and destroyed by exit().
struct Owned {
  std::shared_ptr<sw::Context> context;
  sw::File file;
};
Owned owned;

// Never freed: the threads that exit() leaves running use them.
sw::File* file = nullptr;
Bytes* bytes = nullptr;
Bytes* all[8];  // reachable, so that nothing counts as leaked

sw::Memory memory() { return {bytes->data(), bytes->size()}; }

void read_for_ever() {
  for (;;) static_cast<void>(file->read_into(memory()));
}

void begin(const std::string& what, const std::string& path) {
  auto context = what == "owned" ? sw::Context::create().value() : nullptr;
  file = new sw::File(sw::File::open(path, "r", {}, context).value());
  bytes = new Bytes(file->size().value());
  file->read_into(memory()).value();
  if (what == "idle") return;
  if (what == "thread") {
    std::thread(read_for_ever).detach();
    return;
  }
  for (auto*& own : all) {  // each into memory of its own, which stays
    own = new Bytes(bytes->size());
    file->submit_read({own->data(), own->size()}).value().on_done([] {});
  }
  if (what == "owned") owned = {context, std::move(*file)};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string how = arguments[2];
  try {
    begin(arguments[1], arguments[3]);
    if (how == "throw") throw std::runtime_error("meanwhile");
  } catch (const sw::ErrorException&) {
    return 3;
  } catch (const std::runtime_error&) {
    return 7;
  }
  if (how == "exit") std::exit(7);
  if (how == "uncaught") {
    const ::rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    throw std::runtime_error("on purpose");
  }
  if (how == "quick_exit") std::quick_exit(7);
  return 7;
}
