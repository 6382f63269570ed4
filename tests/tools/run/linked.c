/* A program that is linked with a libcufile.so.0, as C programs are: prints the version that
   answers, and the mark of the library whose it is. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

struct error {
  int code, cuda_code;
};
struct error cuFileGetVersion(int* version);

int main(void) {
  int version = 0;
  cuFileGetVersion(&version);
  Dl_info where;
  dladdr((void*)cuFileGetVersion, &where);
  printf("%d %s\n", version, where.dli_fname);
  return 0;
}
