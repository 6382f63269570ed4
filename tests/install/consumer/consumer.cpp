// What a program that uses an installed Straightway looks like.
#include <cstdio>
#include <vector>

#include "straightway/straightway.hpp"

int main(int, char** argv) {
  const auto file = straightway::File::open(argv[1]);
  if (!file) return std::puts(file.error().message().c_str()), 1;
  std::vector<char> memory(file->size().value());
  const auto receipt = file->read_into({memory.data(), memory.size()});
  if (!receipt) return std::puts(receipt.error().message().c_str()), 1;
  std::printf("%zu bytes: %s\n", memory.size(), receipt->to_text().c_str());
  return receipt->moved_bytes == memory.size() ? 0 : 1;
}
