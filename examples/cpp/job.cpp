// Reads a file while doing something else: a submitted job with progress and a deadline.
//
//   job FILE

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "straightway/straightway.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
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

  // The job shares the ownership of the memory until nothing is in flight any more, so that it
  // would be safe to forget both.
  auto bytes = std::make_shared<std::vector<std::byte>>(*size);

  sw::CallOptions options;
  options.deadline = std::chrono::seconds(60);
  options.on_progress = [](const sw::Progress& progress) {  // on a thread of the library
    std::printf("%llu of %llu bytes\n", static_cast<unsigned long long>(progress.moved_bytes),
                static_cast<unsigned long long>(progress.wanted_bytes));
  };
  sw::Result<sw::Job> job = file->submit_read({bytes->data(), bytes->size()}, options, bytes);
  if (!job) {
    std::fprintf(stderr, "%s\n", job.error().message().c_str());
    return 1;
  }

  // ... other work ...; job->cancel() would stop it, job->done() says whether it is over.

  sw::Result<sw::Receipt> receipt = job->result();
  if (!receipt) {  // a passed deadline is ErrorKind::deadline_exceeded
    std::fprintf(stderr, "%s\n", receipt.error().message().c_str());
    return 1;
  }
  std::printf("%s\n", receipt->to_text().c_str());
  return receipt->moved_bytes == *size ? 0 : 1;
}
