#pragma once
// A call whose bytes may go through the vendor's cuFile library: what must be learned before they
// move, and what counters say afterwards.

#include <memory>
#include <optional>
#include <vector>

#include "api/call.hpp"
#include "drive/vendor_evidence.hpp"
#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"

namespace straightway {

// Whether some of its bytes may go through the vendor's library.
bool takes_vendor(const Plan& plan);

// The file's facts with what is known of the vendor's library and it.
std::shared_ptr<const FileFacts> vendor_facts(OpenFile& file);

// Where the plan takes the vendor's library: loads it and registers the file, once each, and plans
// again with what that taught. Whether facts may have changed.
bool try_vendor(Plan& plan, const CallRange& range);

// Parts that fell back from the vendor's library count as posix, those of which it moved all do
// not.
void count_fallback(const std::vector<Plan>& plans, Receipt& receipt);

// The counters from before a transfer; empty where nothing goes through the vendor's library.
struct VendorLook {
  std::shared_ptr<transport::CufileLibrary> vendor;
  transport::CufileCounts before;
};
std::optional<VendorLook> look_before(const std::vector<CallRange>& ranges,
                                      const std::vector<Plan>& plans);

// After the transfer: evidence of the bytes that went through the library, which count as staged
// where it copied. An error where the policy was direct, and they did.
Result<void> judge_vendor(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                          const VendorLook& look, Receipt& receipt);
// Remembers a refusal for the storage.
void learn_of_vendor(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                     const Receipt& receipt, const std::optional<Error>& error);

}  // namespace straightway
