// The calls of the C ABI: files, transfers, jobs, and what they answer to bad arguments.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "straightway/straightway.h"
#include "tests/api/c_api_fixture.hpp"

namespace {

void count_up(void* user) { ++*static_cast<std::atomic<int>*>(user); }

struct Seen {
  std::atomic<std::uint64_t> moved{0};
  std::atomic<std::uint64_t> wanted{0};
};

void note(std::uint64_t moved, std::uint64_t wanted, void* user) {
  static_cast<Seen*>(user)->moved = moved;
  static_cast<Seen*>(user)->wanted = wanted;
}

std::vector<char> some_bytes(std::size_t size) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 13 % 241);
  return bytes;
}

}  // namespace

TEST_F(CApi, NullIsRefusedWhereSomethingIsNeeded) {
  char byte = 'x';
  sw_job* job = nullptr;
  sw_plan* plan = nullptr;
  std::uint64_t size = 0;
  EXPECT_EQ(sw_context_create(nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_open(nullptr, nullptr, "r", nullptr, &file_, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_open(nullptr, path_.c_str(), "r", nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_open_fd(nullptr, 0, nullptr, nullptr, nullptr), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_file_close(nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_file_size(nullptr, &size, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_read_into(nullptr, &byte, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_write_from(nullptr, &byte, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_submit_read(nullptr, &byte, 1, nullptr, &job, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_read_ranges(nullptr, nullptr, 0, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_job_result(nullptr, 0, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_job_on_done(nullptr, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_job_progress(nullptr, &size, &size, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_explain(nullptr, SW_READ, &byte, 1, nullptr, &plan, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_receipt_summarize(nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_receipt_route(nullptr, 0, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_plan_get_run(nullptr, 0, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_read_many(nullptr, nullptr, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  const sw_path_range pathless{nullptr, 0, 1, &byte};
  EXPECT_EQ(sw_read_many(nullptr, &pathless, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("ranges[0].path"), std::string::npos);
  open();
  EXPECT_EQ(sw_file_size(file_, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_read_into(file_, nullptr, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_submit_read(file_, &byte, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_read_ranges(file_, nullptr, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_explain(file_, SW_READ, &byte, 1, nullptr, nullptr, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(byte, 'x');
}

TEST_F(CApi, OpenErrorsSayWhatAndWhere) {
  const std::string missing = path_ + ".missing";
  EXPECT_EQ(sw_open(nullptr, missing.c_str(), "r", nullptr, &file_, &error_), SW_NOT_FOUND);
  EXPECT_EQ(error_.status, SW_NOT_FOUND);
  EXPECT_EQ(error_.code, ENOENT);
  EXPECT_EQ(error_.origin, SW_ORIGIN_SYSTEM);
  EXPECT_NE(std::string(error_.message).find(missing), std::string::npos) << error_.message;
  EXPECT_EQ(sw_open(nullptr, directory_.c_str(), "r", nullptr, &file_, &error_),
            SW_WRONG_FILE_TYPE);
  EXPECT_EQ(sw_open(nullptr, path_.c_str(), "rw", nullptr, &file_, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_open_fd(nullptr, -1, nullptr, &file_, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(file_, nullptr);
  EXPECT_NE(sw_open(nullptr, path_.c_str(), "x", nullptr, &file_, &error_), SW_OK);
  EXPECT_EQ(error_.code, EEXIST);
}

TEST_F(CApi, DescriptorIsDuplicated) {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(sw_open_fd(nullptr, fd, nullptr, &file_, &error_), SW_OK) << error_.message;
  EXPECT_EQ(std::string(sw_file_path(file_)), "fd " + std::to_string(fd));
  EXPECT_NE(sw_file_descriptor(file_), fd);
  ::close(fd);
  std::uint64_t size = 0;
  EXPECT_EQ(sw_file_size(file_, &size, &error_), SW_OK);
  EXPECT_EQ(size, file_bytes);
}

TEST_F(CApi, WritesLandAndOnlyThere) {
  open("r+");
  const std::vector<char> memory = some_bytes(300);
  auto options = fresh<sw_call_options>();
  options.offset = 4000;
  options.sync = SW_SYNC_DATA;
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_write_from(file_, memory.data(), 300, &options, &receipt, &error_), SW_OK)
      << error_.message;
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), 300U);
  sw_receipt_free(receipt);
  std::string expected = bytes_;
  expected.replace(4000, 300, memory.data(), 300);
  EXPECT_EQ(contents(), expected);
}

TEST_F(CApi, WritingToAFileOpenedForReadingIsRefused) {
  open("r");
  EXPECT_EQ(sw_write_from(file_, "z", 1, nullptr, nullptr, &error_), SW_PERMISSION);
  EXPECT_EQ(contents(), bytes_);
}

TEST_F(CApi, JobOwnsWhatItNeedsAndReportsOnce) {
  open();
  std::vector<char> memory(file_bytes, 'x');
  std::atomic<int> released{0};
  std::atomic<int> called{0};
  Seen seen;
  auto options = fresh<sw_call_options>();
  options.release = count_up;
  options.release_user = &released;
  options.on_progress = note;
  options.on_progress_user = &seen;
  options.deadline_ns = std::uint64_t{60} * 1'000'000'000;
  sw_job* job = nullptr;
  ASSERT_EQ(sw_submit_read(file_, memory.data(), memory.size(), &options, &job, &error_), SW_OK)
      << error_.message;
  ASSERT_EQ(sw_job_on_done(job, count_up, &called, &error_), SW_OK);
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_job_result(job, SW_NO_TIMEOUT, &receipt, &error_), SW_OK) << error_.message;
  EXPECT_EQ(std::string(memory.begin(), memory.end()), bytes_);
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), file_bytes);
  sw_receipt_free(receipt);
  ASSERT_EQ(sw_job_result(job, 0, &receipt, &error_), SW_OK);  // the same answer again
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), file_bytes);
  sw_receipt_free(receipt);
  EXPECT_EQ(sw_job_done(job), 1);
  EXPECT_EQ(sw_job_cancel(job), 0);
  std::uint64_t moved = 0;
  std::uint64_t wanted = 0;
  ASSERT_EQ(sw_job_progress(job, &moved, &wanted, &error_), SW_OK);
  EXPECT_EQ(moved, file_bytes);
  EXPECT_EQ(wanted, file_bytes);
  while (called == 0) std::this_thread::yield();  // callbacks come after the result
  std::atomic<int> late{0};
  ASSERT_EQ(sw_job_on_done(job, count_up, &late, &error_), SW_OK);
  sw_job_free(job);
  sw_file_free(file_);  // drains
  file_ = nullptr;
  while (late == 0) std::this_thread::yield();
  EXPECT_EQ(late, 1);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(seen.moved, file_bytes);
  EXPECT_EQ(seen.wanted, file_bytes);
}

TEST_F(CApi, ReleaseIsNotCalledWhenSubmittingFails) {
  open();
  char byte = 'x';
  std::atomic<int> released{0};
  auto options = fresh<sw_call_options>();
  options.release = count_up;
  options.release_user = &released;
  options.flags = SW_CALL_SIZE;
  options.size_bytes = 2;  // more than the memory has
  sw_job* job = nullptr;
  EXPECT_EQ(sw_submit_read(file_, &byte, 1, &options, &job, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(job, nullptr);
  EXPECT_EQ(released, 0);
}

TEST_F(CApi, SubmittedWriteLands) {
  open("r+");
  const std::vector<char> memory = some_bytes(9000);
  sw_job* job = nullptr;
  ASSERT_EQ(sw_submit_write(file_, memory.data(), memory.size(), nullptr, &job, &error_), SW_OK);
  ASSERT_EQ(sw_job_result(job, SW_NO_TIMEOUT, nullptr, &error_), SW_OK) << error_.message;
  sw_job_free(job);
  EXPECT_EQ(contents(), std::string(memory.begin(), memory.end()) + bytes_.substr(9000));
}

TEST_F(CApi, ManyFilesShareOneReceipt) {
  const std::string other = path_ + ".other";
  std::ofstream(other) << "0123456789";
  std::vector<char> memory(30, 'x');
  const sw_path_range ranges[] = {{path_.c_str(), 5, 20, memory.data()},
                                  {other.c_str(), 2, 8, memory.data() + 20}};
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_read_many(nullptr, ranges, 2, nullptr, &receipt, &error_), SW_OK) << error_.message;
  EXPECT_EQ(std::string(memory.data(), 28), bytes_.substr(5, 20) + "23456789");
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), 28U);
  sw_receipt_free(receipt);
}

TEST_F(CApi, ClosedFilesSaySo) {
  open();
  EXPECT_EQ(sw_file_is_closed(file_), 0);
  EXPECT_GE(sw_file_descriptor(file_), 3);
  ASSERT_EQ(sw_file_close(file_, &error_), SW_OK);
  ASSERT_EQ(sw_file_close(file_, &error_), SW_OK);
  EXPECT_EQ(sw_file_is_closed(file_), 1);
  EXPECT_EQ(sw_file_descriptor(file_), -1);
  EXPECT_EQ(std::string(sw_file_path(file_)), path_);
  char byte = 'x';
  std::uint64_t size = 0;
  sw_job* job = nullptr;
  sw_plan* plan = nullptr;
  EXPECT_EQ(sw_file_size(file_, &size, &error_), SW_CLOSED);
  EXPECT_EQ(sw_read_into(file_, &byte, 1, nullptr, nullptr, &error_), SW_CLOSED);
  EXPECT_EQ(sw_read_into(file_, &byte, 0, nullptr, nullptr, &error_), SW_CLOSED);
  EXPECT_EQ(sw_write_from(file_, &byte, 1, nullptr, nullptr, &error_), SW_CLOSED);
  EXPECT_EQ(sw_submit_read(file_, &byte, 1, nullptr, &job, &error_), SW_CLOSED);
  EXPECT_EQ(sw_submit_write(file_, &byte, 1, nullptr, &job, &error_), SW_CLOSED);
  const sw_range range{0, 1, &byte};
  EXPECT_EQ(sw_read_ranges(file_, &range, 1, nullptr, nullptr, &error_), SW_CLOSED);
  EXPECT_EQ(sw_write_ranges(file_, &range, 1, nullptr, nullptr, &error_), SW_CLOSED);
  EXPECT_EQ(sw_explain(file_, SW_READ, &byte, 1, nullptr, &plan, &error_), SW_CLOSED);
  EXPECT_EQ(byte, 'x');
}

TEST_F(CApi, ErrorsCarryNoHandleOut) {
  open();
  char byte = 'x';
  sw_receipt* receipt = reinterpret_cast<sw_receipt*>(&byte);
  auto options = fresh<sw_call_options>();
  options.policy = 99;
  EXPECT_EQ(sw_read_into(file_, &byte, 1, &options, &receipt, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(receipt, nullptr);
}
