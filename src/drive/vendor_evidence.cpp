#include "drive/vendor_evidence.hpp"

namespace straightway::drive {
namespace {

using transport::CufileCounts;

// What the library counted between two looks.
struct Counted {
  bool sound = false;  // it counts, and nothing went backwards
  std::uint64_t direct = 0;
  std::uint64_t p2pdma = 0;  // of these
  std::uint64_t posix = 0;
};

Counted counted_by_library(const CufileCounts& before, const CufileCounts& after) {
  if (!before.cufile_counts || !after.cufile_counts || after.nvfs < before.nvfs ||
      after.p2pdma < before.p2pdma || after.posix < before.posix) {
    return {};  // not counted, or set to zero meanwhile
  }
  const auto p2pdma = after.p2pdma - before.p2pdma;
  return {true, after.nvfs - before.nvfs + p2pdma, p2pdma, after.posix - before.posix};
}

// alone: no other request's calls are among them, so that what some of them met is this one's.
CufileSaid library_says(const Counted& counted, std::uint64_t calls, bool alone) {
  if (!counted.sound) return CufileSaid::nothing;
  // Calls of others, and the parts that it cuts by itself, can only add to what it counts.
  if (counted.direct < calls && counted.posix < calls - counted.direct) return CufileSaid::nothing;
  if (counted.posix == 0) {
    return counted.p2pdma == counted.direct ? CufileSaid::p2pdma_counted
                                            : CufileSaid::library_counted;
  }
  if (counted.direct == 0) return CufileSaid::copied;
  // Of others too, or in other parts.
  if (counted.direct > calls || counted.posix != calls - counted.direct) return CufileSaid::nothing;
  return alone ? CufileSaid::copied : CufileSaid::nothing;
}

// Whether the library may have gone by P2PDMA, which nvidia-fs never sees.
bool may_bypass_kernel(const CufileCounts& before, const CufileCounts& after) {
  const bool told = before.cufile_counts && after.cufile_counts;
  return told ? after.p2pdma != before.p2pdma : after.knows_p2pdma;
}

// Other programs' transfers can only add to what it counts.
CufileSaid kernel_says(const CufileCounts& before, const CufileCounts& after, std::uint64_t calls) {
  if (!before.kernel_counts || !after.kernel_counts || after.kernel_calls < before.kernel_calls ||
      after.kernel_mib < before.kernel_mib) {
    return CufileSaid::nothing;  // not counted, or set to zero meanwhile
  }
  const auto counted = after.kernel_calls - before.kernel_calls;
  const auto mib = after.kernel_mib - before.kernel_mib;
  if (counted == 0) {
    return may_bypass_kernel(before, after) ? CufileSaid::nothing : CufileSaid::copied;
  }
  // A counter of whole MiB grows by one more where a fraction was there before.
  const auto claimed = (after.bytes - before.bytes) >> 20;
  const bool same_parts = before.cufile_counts && after.cufile_counts &&
                          after.nvfs - before.nvfs == counted && after.posix == before.posix;
  const bool exact = (counted == calls || same_parts) &&
                     after.kernel_failed == before.kernel_failed &&
                     (mib == claimed || mib == claimed + 1);
  return exact ? CufileSaid::kernel_counted : CufileSaid::nothing;
}

}  // namespace

CufileSaid what_counters_say(const CufileCounts& before, const CufileCounts& after,
                             std::uint64_t own_bytes) {
  const auto calls = after.calls - before.calls;
  if (!before.quiet || !after.quiet || calls == 0) return CufileSaid::nothing;
  const auto counted = counted_by_library(before, after);
  const bool alone = after.bytes - before.bytes == own_bytes;
  const auto library = library_says(counted, calls, alone);
  if (library == CufileSaid::copied) return library;
  const auto kernel = kernel_says(before, after, calls);
  // Copies in this process, and as many direct calls of somebody else: the sum only looks right.
  const bool others = counted.sound && counted.posix > 0;
  if (kernel == CufileSaid::kernel_counted && others) return CufileSaid::nothing;
  // Nor does nvidia-fs see P2PDMA: what it counted is somebody else's. So it may be where P2PDMA is
  // switched on, and the library does not say how much went by it.
  const bool may_be_p2pdma = counted.sound ? counted.p2pdma > 0 : after.p2pdma_on;
  const bool unseen = kernel == CufileSaid::kernel_counted && may_be_p2pdma;
  return kernel == CufileSaid::nothing || unseen ? library : kernel;
}

}  // namespace straightway::drive
