/* The C ABI of Straightway: move bytes between files and memory of the host or of a GPU, see the
 * plan before and the receipt after. C99; every call may be made from C++ too.
 *
 * Conventions, which hold for every call unless its comment says otherwise:
 *
 * - Status. A call that can fail returns sw_status: SW_OK (0), or the kind of the failure. Its last
 *   argument, an optional sw_error, then says what was attempted, on what, why it failed and what
 *   to do. Out-arguments are set to NULL or left alone when a call fails. No C++ exception leaves.
 * - Units. Sizes and offsets are bytes, times are nanoseconds.
 * - Ownership. A handle that a call gives out belongs to the caller, who gives it back to the _free
 *   or _destroy call of its type. Text and arrays that a getter returns belong to the handle and
 *   live as long as it does.
 * - NULL. NULL options mean the defaults; a NULL context means the process-default one; a NULL
 *   sw_error or sw_receipt** means "not wanted". A NULL handle, path, out-argument or array where
 *   one is needed is SW_INVALID_ARGUMENT. A getter without a status returns 0 or NULL for a NULL
 *   handle, and every _free and _destroy call takes NULL and does nothing.
 * - Threads. Any call may be made from any thread at any time, on a handle that others use too.
 * Only _free and _destroy want the handle for themselves: no other call on it may be under way.
 * - Callbacks run on threads of the library (or inside the call that registers them, where it says
 *   so). They must not block, must not call back into the library, and must not throw.
 * - Fork. In a forked child host transfers start afresh on the parent's handles; using a GPU or
 *   waiting for the parent's jobs is SW_FORKED.
 *
 * Sized structs. Each struct that may grow begins with struct_size; set it to sizeof the struct and
 * everything else to zero (zero is the default of every field), as SW_INIT does. A library that
 * knows fewer fields than the caller accepts the longer struct while the unknown part is zero, and
 * answers SW_UNSUPPORTED otherwise; one that knows more takes the missing part as zero. A
 * struct_size that no version had is SW_INVALID_ARGUMENT.
 *
 * ABI promise. Within a 0.x minor version (the soname stays libstraightway.so.0) calls, constants
 * and fields are only added, never changed or removed. A program built against a header with
 * SW_ABI_VERSION n runs with every library of that minor version whose sw_abi_version() >= n.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SW_API __attribute__((visibility("default")))
#else
#define SW_API
#endif

#define SW_ABI_VERSION 1

/* "0.1.0"; static storage. */
SW_API const char* sw_version(void);
/* The SW_ABI_VERSION of the library that is loaded. */
SW_API uint32_t sw_abi_version(void);

/* Opaque handles. */
typedef struct sw_context sw_context; /* threads, pinned memory, settings */
typedef struct sw_file sw_file;       /* an open file */
typedef struct sw_job sw_job;         /* a submitted transfer */
typedef struct sw_pin sw_pin;         /* pages of a file that are kept registered */
typedef struct sw_receipt sw_receipt; /* what really happened; a value, independent of all others */
typedef struct sw_plan sw_plan;       /* what would be done; a value, independent of all others */

/* Zeroes a sized struct and sets its struct_size: sw_call_options o; SW_INIT(&o); */
#define SW_INIT(pointer) sw_init((pointer), sizeof *(pointer))
SW_API void sw_init(void* sized_struct, size_t struct_size);

/* ---- Status and errors ---------------------------------------------------------------------- */

typedef int32_t sw_status;
enum {
  SW_OK = 0,
  SW_INVALID_ARGUMENT = 1,   /* the call itself is wrong: size, offset, option, memory, setting */
  SW_NOT_FOUND = 2,          /* no such file */
  SW_WRONG_FILE_TYPE = 3,    /* a directory, FIFO, socket or device where a file is needed */
  SW_PERMISSION = 4,         /* refused by the system, or by the mode the file was opened with */
  SW_CLOSED = 5,             /* the file, job or context was closed */
  SW_NO_SPACE = 6,           /* disk full, quota or file size limit */
  SW_OUT_OF_MEMORY = 7,      /* host, pinned or device memory */
  SW_TOO_MANY_FILES = 8,     /* no descriptor left */
  SW_IO = 9,                 /* the system reported an I/O error */
  SW_SHORT_TRANSFER = 10,    /* SW_CALL_EXACT, and the file ended first */
  SW_ROUTE_REFUSED = 11,     /* the policy allows only routes that are not available here */
  SW_EVIDENCE_MISSING = 12,  /* SW_DEMAND_OBSERVED, and nothing independent confirms */
  SW_DEVICE = 13,            /* the GPU or its driver reported an error */
  SW_UNSUPPORTED = 14,       /* this build, machine or space cannot do it */
  SW_CANCELLED = 15,         /* by sw_job_cancel */
  SW_DEADLINE_EXCEEDED = 16, /* deadline_ns, or the timeout of sw_job_result, passed */
  SW_FORKED = 17             /* a GPU, or a job, of the parent process used in a forked child */
};
/* "not_found"; "unknown" for a value that is none. Static storage. */
SW_API const char* sw_status_name(sw_status status);

/* Who reported sw_error.code. */
enum { SW_ORIGIN_STRAIGHTWAY = 0, SW_ORIGIN_SYSTEM = 1, SW_ORIGIN_CUDA = 2, SW_ORIGIN_CUFILE = 3 };

/* The caller's own: nothing in it is allocated or freed, so it may live on the stack, and it works
 * when memory ran out. Set struct_size before the first use (SW_INIT); one with a wrong struct_size
 * makes the call return SW_INVALID_ARGUMENT before it does anything. A call that succeeds sets the
 * status to SW_OK and the message to "". */
#define SW_MESSAGE_BYTES 1024
typedef struct sw_error {
  uint32_t struct_size;
  sw_status status;
  int32_t origin;  /* SW_ORIGIN_* */
  int32_t code;    /* errno, CUresult or CUfileOpError, by origin; 0 where there is none */
  uint64_t offset; /* file offset of the failure, if has_offset */
  int32_t has_offset;
  int32_t reserved;
  char message[SW_MESSAGE_BYTES]; /* one sentence, UTF-8 as the path is; ends in "..." if cut */
} sw_error;

/* ---- Words ---------------------------------------------------------------------------------- */

/* In options 0 leaves the choice to the next lower rank: call, file, context, environment, default.
 * Any other value that is not listed is SW_INVALID_ARGUMENT. */
typedef int32_t sw_policy;
enum {
  SW_POLICY_DEFAULT = 0,
  SW_POLICY_AUTO = 1,
  SW_POLICY_DIRECT = 2, /* fail with the reason rather than stage */
  SW_POLICY_STAGED = 3
};
/* What becomes of the page cache. */
typedef int32_t sw_cache;
enum {
  SW_CACHE_DEFAULT = 0,
  SW_CACHE_AUTO = 1, /* keep what fits well within spare memory */
  SW_CACHE_KEEP = 2,
  SW_CACHE_DROP = 3,
  SW_CACHE_BYPASS = 4
};
/* The evidence that a receipt must have. */
typedef int32_t sw_demand;
enum {
  SW_DEMAND_DEFAULT = 0,
  SW_DEMAND_ANY = 1, /* a library's word is enough */
  SW_DEMAND_OBSERVED = 2
};
/* How durable a write is when it returns. */
typedef int32_t sw_sync;
enum { SW_SYNC_NONE = 0, SW_SYNC_DATA = 1 /* fdatasync */, SW_SYNC_FULL = 2 /* fsync */ };

typedef int32_t sw_direction;
enum { SW_READ = 0, SW_WRITE = 1 };
typedef int32_t sw_space;
enum { SW_SPACE_HOST = 0, SW_SPACE_CUDA = 1, SW_SPACE_PEER = 2 };
/* Whose documented rules a file follows. */
typedef int32_t sw_door;
enum { SW_DOOR_STRAIGHTWAY = 0, SW_DOOR_KVIKIO = 1, SW_DOOR_CUFILE = 2 };

/* How bytes travel. */
typedef int32_t sw_route;
enum {
  SW_ROUTE_NVFS = 0,         /* storage DMA into GPU memory through nvidia-fs */
  SW_ROUTE_P2PDMA = 1,       /* storage DMA into device memory that the kernel publishes */
  SW_ROUTE_DIRECT_HOST = 2,  /* storage DMA into the caller's host memory (O_DIRECT) */
  SW_ROUTE_PINNED_CACHE = 3, /* the copy engine reads pinned page-cache pages */
  SW_ROUTE_STAGED = 4,       /* into device memory through a pinned ring */
  SW_ROUTE_BUFFERED = 5,     /* into host memory: the plain page-cache copy */
  SW_ROUTE_COUNT = 6
};
/* "direct-host"; "unknown" for a value that is none. Static storage. */
SW_API const char* sw_route_name(sw_route route);

/* Why a route was taken or refused: a code whose word sw_reason_name gives ("nvfs-not-loaded");
 * 0 is none. The sentences stand in the text of plans and receipts. Static storage. */
typedef int32_t sw_reason;
SW_API const char* sw_reason_name(sw_reason reason);

typedef int32_t sw_evidence;
enum { SW_EVIDENCE_NONE = 0, SW_EVIDENCE_OBSERVED = 1, SW_EVIDENCE_CLAIMED = 2 };
typedef int32_t sw_witness;
enum {
  SW_WITNESS_NONE = 0,
  SW_WITNESS_OWN_COPY = 1,       /* our own engine copied them */
  SW_WITNESS_THREAD_IO = 2,      /* /proc/thread-self/io of the threads that worked for it */
  SW_WITNESS_VENDOR_LIBRARY = 3, /* a library said so */
  SW_WITNESS_KERNEL = 4,         /* the kernel accepted direct I/O, which proves no device */
  SW_WITNESS_TRIAL = 5,    /* as 2, and a poisoned block of the same way arrived in device memory */
  SW_WITNESS_NVIDIA_FS = 6 /* the kernel module's counters moved by exactly what was claimed */
};
typedef int32_t sw_scope;
enum { SW_SCOPE_NONE = 0, SW_SCOPE_REQUEST = 1, SW_SCOPE_PROCESS = 2, SW_SCOPE_MACHINE = 3 };

/* ---- Context -------------------------------------------------------------------------------- */

enum {
  SW_CONTEXT_THREADS = 1 << 0,      /* threads counts */
  SW_CONTEXT_PINNED_BYTES = 1 << 1, /* pinned_bytes counts */
  SW_CONTEXT_NO_LEDGER = 1 << 2,    /* publish no statistics */
  SW_CONTEXT_LEDGER = 1 << 3,       /* publish them, whatever the environment says */
  SW_CONTEXT_PIN_BYTES = 1 << 4     /* pin_bytes counts */
};
/* What is set here outranks the environment (STRAIGHTWAY_*). */
typedef struct sw_context_options {
  uint32_t struct_size;
  uint32_t flags; /* SW_CONTEXT_* */
  sw_policy policy;
  sw_cache cache;
  sw_demand evidence;
  int32_t reserved;
  uint64_t threads;      /* 1 to 1024; 0: chosen from the machine */
  uint64_t pinned_bytes; /* hard limit of pinned host memory */
  /* The one sink for warnings; NULL: silence. text ends with NUL and lives during the call. */
  void (*on_warning)(const char* text, void* user);
  void* on_warning_user;
  uint64_t pin_bytes; /* hard limit of what pins of files hold; 0: a quarter of what is available */
} sw_context_options;

/* Makes a context. Reads the environment once: a value that makes no sense is SW_INVALID_ARGUMENT
 * and the message names the variable. Starts no thread and touches no GPU. */
SW_API sw_status sw_context_create(const sw_context_options* options, sw_context** context,
                                   sw_error* error);
/* Gives the handle back. Its files and jobs may outlive it: what they use goes with the last of
 * them, after what is in flight is drained. */
SW_API void sw_context_destroy(sw_context* context);
/* Pays first-use costs now: starts the threads, pins the ring, and, for a CUDA device >= 0, retains
 * its primary context. device -1: the host's part alone. */
SW_API sw_status sw_context_warmup(sw_context* context, int32_t device, sw_error* error);

/* ---- Files ---------------------------------------------------------------------------------- */

typedef struct sw_open_options {
  uint32_t struct_size;
  sw_policy policy; /* defaults of the calls on this file */
  sw_cache cache;
  sw_door door;
} sw_open_options;

/* Opens a regular file (or block device). mode, with an optional "b": "r", "r+", "w" (create or
 * truncate), "x" (create, fail with EEXIST if there); NULL: "r". */
SW_API sw_status sw_open(sw_context* context, const char* path, const char* mode,
                         const sw_open_options* options, sw_file** file, sw_error* error);
/* The same of an open descriptor, which is duplicated: the caller keeps and closes its own. */
SW_API sw_status sw_open_fd(sw_context* context, int fd, const sw_open_options* options,
                            sw_file** file, sw_error* error);
/* Drains the jobs of this file and closes it. The handle stays valid: closing again is no error,
 * any other use is SW_CLOSED. */
SW_API sw_status sw_file_close(sw_file* file, sw_error* error);
/* Closes it if it is open, and gives the handle back. */
SW_API void sw_file_free(sw_file* file);
/* 1 when closed (or NULL), else 0. */
SW_API int sw_file_is_closed(const sw_file* file);
/* The size of the file now. */
SW_API sw_status sw_file_size(const sw_file* file, uint64_t* size_bytes, sw_error* error);
/* As given to sw_open, or "fd 7"; also of a closed file. */
SW_API const char* sw_file_path(const sw_file* file);
/* The library's own descriptor of the file, for looking only; -1 when closed. */
SW_API int sw_file_descriptor(const sw_file* file);

/* A stretch of a file. Never grows. */
typedef struct sw_file_range {
  uint64_t offset;
  uint64_t size_bytes;
} sw_file_range;

/* Keeps page-cache pages of the file registered with the GPU's driver, as far as the file goes:
 * ranges NULL means all of it. Reads of device memory that lie within it then go out by the copy
 * engine straight from the page cache. Where the file changes, all its pins are given up, with a
 * warning, and such reads go through the ring: never stale bytes. device: whose context registers
 * the pages, for all GPUs; -1: the thread's current one, else the first. SW_UNSUPPORTED where it
 * cannot be made safe, SW_OUT_OF_MEMORY beyond pin_bytes. */
SW_API sw_status sw_file_pin(const sw_file* file, const sw_file_range* ranges, size_t count,
                             int32_t device, sw_pin** pin, sw_error* error);
/* 1 while it holds; 0 once it was given up, or its file closed. */
SW_API int sw_pin_holds(const sw_pin* pin);
/* Waits for the copies that use the pages, lets them go, and gives the handle back. */
SW_API void sw_pin_release(sw_pin* pin);

/* ---- Transfers ------------------------------------------------------------------------------ */

enum {
  SW_CALL_SIZE = 1 << 0, /* size_bytes counts; else the size is that of the memory */
  SW_CALL_EXACT = 1 << 1 /* a read that the end of the file cuts short is SW_SHORT_TRANSFER */
};
/* Options of one call. */
typedef struct sw_call_options {
  uint32_t struct_size;
  uint32_t flags;      /* SW_CALL_* */
  uint64_t offset;     /* file offset; not of the _ranges and _many calls, whose ranges say it */
  uint64_t size_bytes; /* at most the memory's; the same */
  sw_policy policy;
  sw_cache cache;
  sw_demand evidence;
  sw_sync sync; /* writes only */
  /* A CUDA stream of the memory's device: the transfer comes after the work queued on it, and work
   * queued on it once the transfer is done sees the data. NULL: the legacy default stream. Ignored
   * for host memory. */
  void* stream;
  uint64_t deadline_ns; /* from now; 0: none. When it passes, what is in flight drains first */
  /* At most every 50 ms, and once at the end. */
  void (*on_progress)(uint64_t moved_bytes, uint64_t wanted_bytes, void* user);
  void* on_progress_user;
  /* Submitted calls only: called once, when the memory is no longer used. Not called when the
   * submitting call fails: the caller then still owns the memory. */
  void (*release)(void* user);
  void* release_user;
} sw_call_options;

/* Reads from the file into memory of any kind, found from the address; waits. Reading past the end
 * of the file gives what exists (see sw_receipt_summary.ended_early). Zero bytes are a success once
 * the arguments were checked. *receipt (may be NULL: not wanted) is to be freed. */
SW_API sw_status sw_read_into(const sw_file* file, void* address, size_t memory_bytes,
                              const sw_call_options* options, sw_receipt** receipt,
                              sw_error* error);
/* Writes memory to the file; waits. */
SW_API sw_status sw_write_from(const sw_file* file, const void* address, size_t memory_bytes,
                               const sw_call_options* options, sw_receipt** receipt,
                               sw_error* error);

/* The same, not waiting: the memory must stay until the job is done (sw_job_done, sw_job_result, or
 * release). The job keeps what it needs of the file. */
SW_API sw_status sw_submit_read(const sw_file* file, void* address, size_t memory_bytes,
                                const sw_call_options* options, sw_job** job, sw_error* error);
SW_API sw_status sw_submit_write(const sw_file* file, const void* address, size_t memory_bytes,
                                 const sw_call_options* options, sw_job** job, sw_error* error);

/* One range of a many-range call. Never grows. */
typedef struct sw_range {
  uint64_t offset;
  uint64_t size_bytes;
  void* address; /* of at least size_bytes; all ranges lie in one space */
} sw_range;

/* Many ranges of one file, one receipt; waits. count 0 is a success. ranges may be NULL only then.
 */
SW_API sw_status sw_read_ranges(const sw_file* file, const sw_range* ranges, size_t count,
                                const sw_call_options* options, sw_receipt** receipt,
                                sw_error* error);
SW_API sw_status sw_write_ranges(const sw_file* file, const sw_range* ranges, size_t count,
                                 const sw_call_options* options, sw_receipt** receipt,
                                 sw_error* error);

/* One range of a many-range call with one memory. Never grows. */
typedef struct sw_placed_range {
  uint64_t offset; /* in the file */
  uint64_t size_bytes;
  uint64_t position; /* in the memory */
} sw_placed_range;

/* As sw_read_ranges, with one memory for all. Before anything moves, all ranges are checked: what
 * lies outside the memory is SW_INVALID_ARGUMENT, and so are two ranges that would fill the same
 * bytes of it (a read) or of the file (a write). */
SW_API sw_status sw_read_ranges_into(const sw_file* file, void* address, size_t memory_bytes,
                                     const sw_placed_range* ranges, size_t count,
                                     const sw_call_options* options, sw_receipt** receipt,
                                     sw_error* error);
SW_API sw_status sw_write_ranges_from(const sw_file* file, const void* address, size_t memory_bytes,
                                      const sw_placed_range* ranges, size_t count,
                                      const sw_call_options* options, sw_receipt** receipt,
                                      sw_error* error);

/* One range of one of many files. Never grows. */
typedef struct sw_path_range {
  const char* path;
  uint64_t offset;
  uint64_t size_bytes;
  void* address;
} sw_path_range;

/* Reads ranges of many files, one receipt; waits. The first error stops the rest, and is returned
 * once nothing is in flight. */
SW_API sw_status sw_read_many(sw_context* context, const sw_path_range* ranges, size_t count,
                              const sw_call_options* options, sw_receipt** receipt,
                              sw_error* error);

/* ---- Jobs ----------------------------------------------------------------------------------- */

#define SW_NO_TIMEOUT UINT64_MAX

/* Waits for the job, at most timeout_ns; may be called again, with the same answer. Nothing is in
 * flight when it returns, except when the timeout passed: SW_DEADLINE_EXCEEDED with sw_job_done 0.
 */
SW_API sw_status sw_job_result(const sw_job* job, uint64_t timeout_ns, sw_receipt** receipt,
                               sw_error* error);
/* 1 when done (in any way), else 0. */
SW_API int sw_job_done(const sw_job* job);
/* Stops submitting; what is in flight drains, then the result is SW_CANCELLED. 0: it was done. */
SW_API int sw_job_cancel(const sw_job* job);
/* Calls back once the job is done, in the order of these calls; within this call if none waits. */
SW_API sw_status sw_job_on_done(const sw_job* job, void (*callback)(void* user), void* user,
                                sw_error* error);
/* Bytes so far; either pointer may be NULL. */
SW_API sw_status sw_job_progress(const sw_job* job, uint64_t* moved_bytes, uint64_t* wanted_bytes,
                                 sw_error* error);
/* Gives the handle back; neither cancels nor waits. */
SW_API void sw_job_free(sw_job* job);

/* ---- Receipts ------------------------------------------------------------------------------- */

/* Times are of CLOCK_MONOTONIC; 0: it did not come to that. */
typedef struct sw_receipt_summary {
  uint32_t struct_size;
  sw_direction direction;
  sw_door door;
  sw_space space;
  int32_t device; /* CUDA ordinal; -1: host memory */
  int32_t ended_early;
  uint64_t end_of_file; /* where the file ended, if ended_early */
  uint64_t file_offset; /* of the first range */
  uint64_t wanted_bytes;
  uint64_t moved_bytes;
  uint32_t retries;      /* pieces submitted again: EINTR, EAGAIN, short transfers */
  uint32_t fallbacks;    /* segments that took another route after a listed error */
  int32_t fallback_code; /* the first one's errno */
  int32_t disk_measured; /* disk_bytes was observed */
  uint64_t disk_bytes;   /* read from storage on behalf of this request */
  uint32_t threads;      /* that worked for it */
  uint32_t reserved;
  uint64_t pinned_bytes;
  uint64_t queued_ns;
  uint64_t started_ns;
  uint64_t first_byte_ns;
  uint64_t done_ns;
  uint64_t layer_n; /* what the cuFile layer counted */
  uint64_t layer_nvfs;
  uint64_t layer_p2pdma;
  uint64_t layer_posix;
  uint64_t range_count; /* of sw_receipt_ranges; 0 for a call of one range */
  /* What of the request was in the page cache when it was looked up; all 0: nothing was. */
  uint64_t found_hot_bytes;
  uint64_t found_cold_bytes;
  uint64_t found_unknown_bytes;
  uint64_t pin_bytes; /* of the file's page cache, that pins held */
} sw_receipt_summary;

typedef struct sw_route_share {
  uint32_t struct_size;
  sw_route route;
  uint64_t bytes;
  uint64_t segments;
  sw_reason reason;  /* why it was taken */
  sw_reason refused; /* why it was not; 0: it was taken, or not asked */
  sw_evidence evidence;
  sw_witness witness;
  sw_scope scope;
  int32_t reserved;
} sw_route_share;

SW_API uint64_t sw_receipt_moved_bytes(const sw_receipt* receipt);
SW_API uint64_t sw_receipt_wanted_bytes(const sw_receipt* receipt);
/* Fills *summary, whose struct_size must be set. */
SW_API sw_status sw_receipt_summarize(const sw_receipt* receipt, sw_receipt_summary* summary,
                                      sw_error* error);
/* Fills *share, whose struct_size must be set, with what is known of one route. */
SW_API sw_status sw_receipt_route(const sw_receipt* receipt, sw_route route, sw_route_share* share,
                                  sw_error* error);
/* The parts of a many-range receipt as arrays in the order of the call; returns their length, 0 for
 * a call of one range. Any pointer may be NULL. */
SW_API size_t sw_receipt_ranges(const sw_receipt* receipt, const uint64_t** offset,
                                const uint64_t** wanted_bytes, const uint64_t** moved_bytes);
/* For people. NULL when memory ran out. */
SW_API const char* sw_receipt_text(const sw_receipt* receipt);
/* JSON (UTF-8). NULL when memory ran out. */
SW_API const char* sw_receipt_json(const sw_receipt* receipt);
SW_API void sw_receipt_free(sw_receipt* receipt);

/* ---- Plans ---------------------------------------------------------------------------------- */

/* The plan of a transfer with these arguments; nothing moves. A request that cannot be served as
 * asked is a plan too: sw_plan_failure says why. */
SW_API sw_status sw_explain(const sw_file* file, sw_direction direction, const void* address,
                            size_t memory_bytes, const sw_call_options* options, sw_plan** plan,
                            sw_error* error);
/* The same for memory that does not exist yet. device: CUDA ordinal; ignored for host memory. */
SW_API sw_status sw_explain_space(const sw_file* file, sw_direction direction, sw_space space,
                                  int32_t device, uint64_t size_bytes,
                                  const sw_call_options* options, sw_plan** plan, sw_error* error);
/* 0, or why the request cannot be served as asked. */
SW_API sw_reason sw_plan_failure(const sw_plan* plan);
/* Why a route is not taken; 0: it is, or was not asked, or is none. */
SW_API sw_reason sw_plan_refused(const sw_plan* plan, sw_route route);

/* A stretch of the request that travels one way. */
typedef struct sw_plan_run {
  uint32_t struct_size;
  sw_route route;
  sw_reason reason;
  int32_t direct_io; /* the storage side is O_DIRECT */
  uint64_t offset;
  uint64_t size_bytes;
  uint64_t segment_bytes;
  uint64_t segments;
} sw_plan_run;
SW_API size_t sw_plan_run_count(const sw_plan* plan);
/* Fills *run, whose struct_size must be set; i < sw_plan_run_count. */
SW_API sw_status sw_plan_get_run(const sw_plan* plan, size_t i, sw_plan_run* run, sw_error* error);
/* For people. NULL when memory ran out. */
SW_API const char* sw_plan_text(const sw_plan* plan);
/* JSON (UTF-8). NULL when memory ran out. */
SW_API const char* sw_plan_json(const sw_plan* plan);
SW_API void sw_plan_free(sw_plan* plan);

#ifdef __cplusplus
}
#endif
