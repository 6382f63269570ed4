/* An audit library (LD_AUDIT, see rtld-audit(7)): whoever searches for a libcufile.so, by name or
   by a path, gets the libcufile.so.0 that lies beside this file. Straightway's own libraries are
   left alone, since they load NVIDIA's on purpose, and so are the libraries that they load.

   It needs the C library alone, and does nothing where ours is not beside it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static const char library_name[] = "libcufile.so";
static const char file_name[] = "libcufile.so.0";

/* What a search is told apart by: the cookie of the object that asks. */
enum { redirected = 0, left_alone = 1 };

static char our_library[4096]; /* empty: nothing to redirect to */

static const char* base_of(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static int is_cufile(const char* path) {
  return strncmp(base_of(path), library_name, sizeof(library_name) - 1) == 0;
}

/* The program itself has no name among the loaded objects. */
static int program_is_ours(void) {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (size < 0) return 0;
  path[size] = '\0';
  return strcmp(base_of(path), "straightway") == 0;
}

static int is_ours(const char* path) {
  if (path[0] == '\0') return program_is_ours();
  const char* base = base_of(path);
  return strncmp(base, "libstraightway", 14) == 0 || strncmp(base, "_straightway", 12) == 0;
}

EXPORTED unsigned int la_version(unsigned int version) {
  Dl_info self;
  if (dladdr((void*)(uintptr_t)la_version, &self) == 0 || self.dli_fname == NULL) return version;
  const size_t folder = (size_t)(base_of(self.dli_fname) - self.dli_fname);
  if (folder == 0 || folder + sizeof(file_name) > sizeof(our_library)) return version;
  memcpy(our_library, self.dli_fname, folder);
  memcpy(our_library + folder, file_name, sizeof(file_name));
  if (access(our_library, R_OK) != 0) our_library[0] = '\0';
  return version; /* the functions here are the same in all of them */
}

/* Every libcufile that is loaded is ours, or one that ours has loaded. */
EXPORTED unsigned int la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)space;
  *cookie = is_cufile(map->l_name) || is_ours(map->l_name) ? left_alone : redirected;
  return 0;
}

EXPORTED char* la_objsearch(const char* name, uintptr_t* cookie, unsigned int flag) {
  if (flag == LA_SER_ORIG && our_library[0] != '\0' && *cookie != left_alone && is_cufile(name)) {
    return our_library;
  }
  return (char*)(uintptr_t)name;
}
