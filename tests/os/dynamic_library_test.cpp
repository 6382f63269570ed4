#include "os/dynamic_library.hpp"

#include <gmock/gmock.h>

namespace straightway::os {
namespace {

using testing::HasSubstr;

TEST(DynamicLibrary, FillsATable) {
  const auto library = DynamicLibrary::open("libm.so.6");
  ASSERT_TRUE(library.ok());
  double (*cosine)(double) = nullptr;
  const Symbol table[] = {{"cos", reinterpret_cast<void**>(&cosine)}};
  ASSERT_TRUE(library->fill(table).ok());
  EXPECT_EQ(cosine(0.0), 1.0);
}

TEST(DynamicLibrary, NamesAllThatIsMissing) {
  const auto library = DynamicLibrary::open("libm.so.6");
  void* slots[3] = {};
  const Symbol table[] = {{"no_such_a", &slots[0]}, {"cos", &slots[1]}, {"no_such_b", &slots[2]}};
  const auto filled = library->fill(table);
  ASSERT_FALSE(filled.ok());
  EXPECT_EQ(filled.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(filled.error().why, HasSubstr("no_such_a, no_such_b"));
}

TEST(DynamicLibrary, ALibraryThatIsNotThereIsNotFound) {
  const auto library = DynamicLibrary::open("libno-such-thing.so.9");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().kind, ErrorKind::not_found);
  EXPECT_THAT(library.error().why, HasSubstr("libno-such-thing.so.9"));
}

TEST(DynamicLibrary, TellsWhatIsLoadedWithoutLoadingIt) {
  EXPECT_TRUE(library_is_loaded("libc.so.6"));
  const auto before = libraries_loaded();
  EXPECT_FALSE(library_is_loaded("libno-such-thing.so.9"));
  EXPECT_EQ(libraries_loaded(), before);
  EXPECT_GT(before, 0U);
}

}  // namespace
}  // namespace straightway::os
