// Reads a file into host memory, shows the plan before and the receipt after.
//
//   read FILE

#include <cstdio>
#include <vector>

#include "straightway/straightway.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }

  // Nothing throws: a call gives a value or an Error that says what to do.
  sw::Result<sw::File> file = sw::File::open(argv[1]);
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message().c_str());
    return 1;
  }
  sw::Result<std::uint64_t> size = file->size();
  if (!size) {
    std::fprintf(stderr, "%s\n", size.error().message().c_str());
    return 1;
  }

  // Any memory will do; a GPU pointer is recognised as one.
  std::vector<std::byte> bytes(*size);
  const sw::Memory memory{bytes.data(), bytes.size()};

  // The plan: which way the bytes would go, and why no other. Nothing moves.
  sw::Result<sw::Plan> plan = file->explain(sw::Direction::read, memory);
  if (plan) std::printf("%s\n", plan->to_text().c_str());

  sw::Result<sw::Receipt> receipt = file->read_into(memory);
  if (!receipt) {
    std::fprintf(stderr, "%s\n", receipt.error().message().c_str());
    return 1;
  }
  std::printf("%s\n", receipt->to_text().c_str());
  return receipt->moved_bytes == *size ? 0 : 1;
}
