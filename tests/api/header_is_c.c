/* Compiled as strict C99: the header is C, its macros work in C, and its layout is frozen. */
#include "straightway/straightway.h"

#define ASSERT_AT_COMPILE_TIME(name, condition) typedef char name[(condition) ? 1 : -1]

ASSERT_AT_COMPILE_TIME(error_bytes, sizeof(sw_error) == 1056);
ASSERT_AT_COMPILE_TIME(context_options_bytes, sizeof(sw_context_options) == 64);
ASSERT_AT_COMPILE_TIME(open_options_bytes, sizeof(sw_open_options) == 16);
ASSERT_AT_COMPILE_TIME(call_options_bytes, sizeof(sw_call_options) == 88);
ASSERT_AT_COMPILE_TIME(range_bytes, sizeof(sw_range) == 24);
ASSERT_AT_COMPILE_TIME(file_range_bytes, sizeof(sw_file_range) == 16);
ASSERT_AT_COMPILE_TIME(path_range_bytes, sizeof(sw_path_range) == 32);
ASSERT_AT_COMPILE_TIME(summary_bytes, sizeof(sw_receipt_summary) == 200);
ASSERT_AT_COMPILE_TIME(share_bytes, sizeof(sw_route_share) == 48);
ASSERT_AT_COMPILE_TIME(run_bytes, sizeof(sw_plan_run) == 48);

/* What C makes of them, for the C++ test to compare. */
int header_is_c_calls(void);
int header_is_c_calls(void) {
  sw_error error;
  sw_file* file = NULL;
  SW_INIT(&error);
  if (error.struct_size != sizeof error || error.message[0] != '\0') return 1;
  if (sw_open(NULL, NULL, "r", NULL, &file, &error) != SW_INVALID_ARGUMENT) return 2;
  if (file != NULL || error.status != SW_INVALID_ARGUMENT || error.message[0] == '\0') return 3;
  return 0;
}
