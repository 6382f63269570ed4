#include "api/open_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/temp_file.hpp"

namespace straightway {
namespace {

class OpenFileTest : public testing::Test {
 protected:
  Error failure(const std::string& path, std::string_view mode = "r") {
    auto file = File::open(path, mode);
    return file ? Error{} : file.error();
  }
  tests::TempFolder folder;
};

TEST_F(OpenFileTest, B1_OnlyTheDocumentedModes) {
  const auto path = folder.write("a", tests::pattern(10));
  for (const char* mode : {"r", "rb", "r+", "r+b", "rb+"}) EXPECT_TRUE(File::open(path, mode));
  for (const char* mode : {"", "rw", "a", "a+", "b", "rr", "rbb", "R", "r++", "wx"}) {
    const auto error = failure(path, mode);
    EXPECT_EQ(error.kind, ErrorKind::invalid_argument) << mode;
    EXPECT_NE(error.message().find("'x+'"), std::string::npos) << mode;
  }
  EXPECT_EQ(folder.read("a").size(), 10U);  // and none of them truncated it
}

TEST_F(OpenFileTest, B4_WTruncatesAndXRefusesWhatIsThere) {
  const auto path = folder.write("a", tests::pattern(8192));
  EXPECT_EQ(failure(path, "x").code, EEXIST);
  auto file = File::open(path, "w");
  ASSERT_TRUE(file);
  auto bytes = tests::pattern(4096, 7);
  ASSERT_TRUE(file->write_from({bytes.data(), bytes.size()}));
  EXPECT_EQ(folder.read("a"), bytes);
  EXPECT_TRUE(File::open(folder.path("new"), "x"));
}

TEST_F(OpenFileTest, B11_WhatIsNoFileIsSaidSo) {
  const auto missing = failure(folder.path("missing"));
  EXPECT_EQ(missing.kind, ErrorKind::not_found);
  EXPECT_EQ(missing.code, ENOENT);
  EXPECT_EQ(missing.path, folder.path("missing"));
  std::filesystem::create_symlink(folder.path("nowhere"), folder.path("dangling"));
  EXPECT_EQ(failure(folder.path("dangling")).kind, ErrorKind::not_found);
  ::mkfifo(folder.path("fifo").c_str(), 0600);
  for (const char* mode : {"r", "w", "r+"}) {
    EXPECT_EQ(failure(folder.path(""), mode).kind, ErrorKind::wrong_file_type) << mode;
    EXPECT_EQ(failure(folder.path(""), mode).code, EISDIR) << mode;
    EXPECT_EQ(failure(folder.path("fifo"), mode).kind, ErrorKind::wrong_file_type) << mode;
    EXPECT_EQ(failure("/dev/null", mode).kind, ErrorKind::wrong_file_type) << mode;
  }
  EXPECT_EQ(failure("").kind, ErrorKind::invalid_argument);
  EXPECT_EQ(failure(std::string("a\0b", 3)).kind, ErrorKind::invalid_argument);
}

TEST_F(OpenFileTest, B14_ANameTooLongIsShown) {
  const auto path = folder.path(std::string(300, 'n'));
  EXPECT_EQ(failure(path).code, ENAMETOOLONG);
  EXPECT_NE(failure(path).message().find(std::string(300, 'n')), std::string::npos);
}

TEST_F(OpenFileTest, H_ASymlinkIsFollowed) {
  const auto bytes = tests::pattern(5000);
  folder.write("target", bytes);
  std::filesystem::create_symlink("target", folder.path("link"));
  auto file = File::open(folder.path("link"));
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->size(), 5000U);
}

TEST_F(OpenFileTest, DescriptorsAreDuplicatedAndChecked) {
  const auto path = folder.write("a", tests::pattern(100));
  const int fd = ::open(path.c_str(), O_RDONLY);
  {
    auto file = File::from_descriptor(fd);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->path(), "fd " + std::to_string(fd));
    EXPECT_NE(file->descriptor(), fd);
    EXPECT_GT(file->descriptor(), 2);
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), 0);  // still the caller's
  ::close(fd);
  EXPECT_EQ(File::from_descriptor(fd).error().code, EBADF);
  EXPECT_EQ(File::from_descriptor(-1).error().code, EBADF);
  const int append = ::open(path.c_str(), O_WRONLY | O_APPEND);
  EXPECT_EQ(File::from_descriptor(append).error().kind, ErrorKind::invalid_argument);
  ::close(append);
  const int by_path = ::open(path.c_str(), O_PATH);
  EXPECT_EQ(File::from_descriptor(by_path).error().kind, ErrorKind::invalid_argument);
  ::close(by_path);
}

TEST_F(OpenFileTest, B5_OpenAndCloseLeaveNoDescriptor) {
  const auto path = folder.write("a", tests::pattern(8192));
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  CallOptions direct;
  direct.policy = Policy::direct;
  std::vector<char> memory(8192 + 4096);
  auto* aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 4095) &
                                          ~std::uintptr_t{4095});
  {
    auto file = File::open(path);
    static_cast<void>(file->read_into({aligned, 8192}, direct));
  }
  const auto before = count();
  for (int i = 0; i < 2000; ++i) {
    auto file = File::open(path);
    ASSERT_TRUE(file);
    if (i % 100 == 0) static_cast<void>(file->read_into({aligned, 8192}, direct));
  }
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace straightway
