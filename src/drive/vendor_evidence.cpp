#include "drive/vendor_evidence.hpp"

namespace straightway::drive {
namespace {

using transport::CufileCounts;

CufileSaid library_says(const CufileCounts& before, const CufileCounts& after,
                        std::uint64_t calls) {
  if (!before.library_counts || !after.library_counts) return CufileSaid::nothing;
  const auto direct = after.nvfs - before.nvfs + (after.p2pdma - before.p2pdma);
  const auto posix = after.posix - before.posix;
  if (direct + posix != calls) return CufileSaid::nothing;  // of others too, or in other parts
  return posix > 0 ? CufileSaid::copied : CufileSaid::library_counted;
}

// Other programs' transfers can only add to what it counts.
CufileSaid kernel_says(const CufileCounts& before, const CufileCounts& after, std::uint64_t calls) {
  if (!before.kernel_counts || !after.kernel_counts || after.kernel_calls < before.kernel_calls ||
      after.kernel_mib < before.kernel_mib) {
    return CufileSaid::nothing;  // not counted, or set to zero meanwhile
  }
  const auto counted = after.kernel_calls - before.kernel_calls;
  const auto mib = after.kernel_mib - before.kernel_mib;
  // Transfers of P2PDMA never come by it.
  if (counted == 0 && after.p2pdma == before.p2pdma) return CufileSaid::copied;
  // A counter of whole MiB grows by one more where a fraction was there before.
  const auto claimed = (after.bytes - before.bytes) >> 20;
  const bool exact = counted == calls && after.kernel_failed == before.kernel_failed &&
                     (mib == claimed || mib == claimed + 1);
  return exact ? CufileSaid::kernel_counted : CufileSaid::nothing;
}

}  // namespace

CufileSaid what_counters_say(const CufileCounts& before, const CufileCounts& after) {
  const auto calls = after.calls - before.calls;
  if (!before.quiet || !after.quiet || calls == 0) return CufileSaid::nothing;
  const auto library = library_says(before, after, calls);
  if (library == CufileSaid::copied) return library;
  const auto kernel = kernel_says(before, after, calls);
  return kernel == CufileSaid::nothing ? library : kernel;
}

}  // namespace straightway::drive
