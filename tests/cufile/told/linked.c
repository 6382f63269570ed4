/* A program that is linked with a libcufile.so.0: reads a file into device memory, and says which
   library answered. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

struct Error {
  int code, cuda_code;
};
struct Descriptor {
  int type;
  union {
    int fd;
    void* handle;
  };
  const void* operations;
};
struct Error cuFileHandleRegister(void** handle, struct Descriptor* descriptor);
void cuFileHandleDeregister(void* handle);
ssize_t cuFileRead(void* handle, void* memory, size_t size, off_t offset, off_t memory_offset);

static void* device_memory(size_t size) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == NULL) return NULL;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
  int (*push)(void*) = (int (*)(void*))dlsym(cuda, "cuCtxPushCurrent_v2");
  int (*allocate)(uint64_t*, size_t) = (int (*)(uint64_t*, size_t))dlsym(cuda, "cuMemAlloc_v2");
  void* context = NULL;
  uint64_t memory = 0;
  if (init(0) != 0 || retain(&context, 0) != 0 || push(context) != 0) return NULL;
  return allocate(&memory, size) == 0 ? (void*)(uintptr_t)memory : NULL;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const size_t size = (size_t)atol(words[2]);
  void* memory = device_memory(size);
  struct Descriptor descriptor = {1, {open(words[1], O_RDONLY)}, NULL};
  void* handle = NULL;
  const int code = cuFileHandleRegister(&handle, &descriptor).code;
  const ssize_t moved = code == 0 ? cuFileRead(handle, memory, size, 0, 0) : -1;
  Dl_info answered = {0};
  dladdr((void*)(uintptr_t)cuFileRead, &answered);
  printf("%d %zd %s", code, moved, answered.dli_fname);
  /* The vendor's library, where somebody has loaded it. */
  void* vendors = dlopen(words[3], RTLD_NOW | RTLD_NOLOAD);
  if (vendors != NULL) {
    uint64_t (*calls)(void) = (uint64_t (*)(void))dlsym(vendors, "fake_cufile_calls");
    const char* (*caller)(void) = (const char* (*)(void))dlsym(vendors, "fake_cufile_caller");
    printf(" %lu %s", (unsigned long)calls(), caller());
  }
  printf("\n");
  if (handle != NULL) cuFileHandleDeregister(handle);
  return 0;
}
