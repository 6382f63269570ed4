// Where the vendor's library is looked for.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/facts.hpp"
#include "os/machine_facts.hpp"
#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

TEST(VendorLibrary, FoundInTheLoadersCache) {
  const TempTree tree;
  const std::string path = tree.write("opt/cuda/libcufile.so.0",
                                      "\x7f"
                                      "ELF");
  const std::string cache = std::string("glibc-ld.so.cache1.1\0libcufile.so.0\0", 36) +
                            std::string("/opt/cuda/libcufile.so.0\0", 25);
  tree.write("etc/ld.so.cache", cache);
  EXPECT_EQ(find_vendor_library("", tree.root()), path);
}

TEST(VendorLibrary, TheVariableComesFirst) {
  const TempTree tree;
  tree.write("usr/lib/x86_64-linux-gnu/libcufile.so.0",
             "\x7f"
             "ELF");
  const std::string path = tree.write("mine/libcufile.so.0",
                                      "\x7f"
                                      "ELF");
  EXPECT_EQ(find_vendor_library("/nowhere::/mine", tree.root()), path);
}

TEST(VendorLibrary, ARelativeFolderOfTheVariableIsPassedOver) {
  EXPECT_EQ(find_vendor_library("tests:.", "/nowhere/"), "");
  const TempTree tree;
  tree.write("mine/libcufile.so.0",
             "\x7f"
             "ELF");
  EXPECT_EQ(find_vendor_library("mine", tree.root() + "/"), "");
}

TEST(VendorLibrary, APipeIsNotReadFrom) {
  const TempTree tree;
  const std::string path = tree.folder("a") + "/libcufile.so.0";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int pipe = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const std::string sent(
      "\x7f"
      "ELF of somebody else");
  ASSERT_EQ(::write(pipe, sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
  EXPECT_EQ(find_vendor_library("/a", tree.root()), "");
  EXPECT_EQ(read_machine_facts(tree.root(), path).vendor_path, "");
  EXPECT_EQ(read_machine_facts(tree.root(), tree.root()).vendor_path, "");
  std::string left(64, '\0');
  EXPECT_EQ(::read(pipe, left.data(), left.size()), static_cast<ssize_t>(sent.size()));
  ::close(pipe);
}

TEST(VendorLibrary, OursAndWhatIsNoLibraryDoNotCount) {
  const TempTree tree;
  constexpr std::string_view own("\x7f\x45LF ..\0straightway_cufile\0..", 30);
  tree.write("a/libcufile.so.0", own);
  tree.write("b/libcufile.so.0", "a linker script");
  tree.folder("c/libcufile.so.0");
  EXPECT_EQ(find_vendor_library("/a:/b:/c", tree.root()), "");
}

}  // namespace
}  // namespace straightway::os
