/* A library that opens another one: who asks for a library decides what an audit library answers.
 */

#include <dlfcn.h>

void* open_library(const char* name) {
  void* volatile opened = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* a tail call would not be ours */
  return opened;
}
