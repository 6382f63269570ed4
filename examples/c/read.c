/* Reads a file into host memory by the C ABI, shows the plan before and the receipt after.
 *
 *   read FILE
 */
#include <stdio.h>
#include <stdlib.h>

#include "straightway/straightway.h"

static int fail(const sw_error* error) {
  fprintf(stderr, "%s\n", error->message);
  return 1;
}

static int read_file(sw_file* file, void* memory, size_t size, sw_error* error) {
  sw_plan* plan = NULL;
  sw_receipt* receipt = NULL;
  sw_call_options options;
  int complete;

  /* Zero is the default of every option; NULL instead of &options would do the same here. */
  SW_INIT(&options);
  options.flags = SW_CALL_EXACT; /* a file that ends early is an error */

  /* The plan: which way the bytes would go, and why no other. Nothing moves. */
  if (sw_explain(file, SW_READ, memory, size, &options, &plan, error) != SW_OK) return fail(error);
  printf("%s\n", sw_plan_text(plan));
  sw_plan_free(plan);

  if (sw_read_into(file, memory, size, &options, &receipt, error) != SW_OK) return fail(error);
  printf("%s\n", sw_receipt_text(receipt));
  complete = sw_receipt_moved_bytes(receipt) == size;
  sw_receipt_free(receipt);
  return complete ? 0 : 1;
}

int main(int argc, char** argv) {
  sw_error error;
  sw_file* file = NULL;
  uint64_t size = 0;
  void* memory;
  int status;

  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  SW_INIT(&error);
  if (sw_open(NULL, argv[1], "r", NULL, &file, &error) != SW_OK) return fail(&error);
  if (sw_file_size(file, &size, &error) != SW_OK) {
    sw_file_free(file);
    return fail(&error);
  }
  memory = malloc(size == 0 ? 1 : (size_t)size);
  status = memory == NULL ? 1 : read_file(file, memory, (size_t)size, &error);
  sw_file_free(file); /* before the memory: it drains what is in flight */
  free(memory);
  return status;
}
