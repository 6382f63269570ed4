#pragma once
// What receipts and errors say of a transfer, whoever drove it.

#include <cstdint>
#include <string>

#include "straightway/receipt.hpp"
#include "straightway/result.hpp"

namespace straightway::drive {

// The evidence for bytes that our own engines moved and whose completion was seen. O_DIRECT is
// observed only when the threads' account says that the storage was read: success alone proves
// nothing (tmpfs accepts O_DIRECT without a device). disk_bytes < 0: not measured.
Evidence own_evidence(Route route, Direction direction, std::uint64_t bytes,
                      std::int64_t disk_bytes);

// A system error of a transfer, complete for a reader.
Error transfer_error(Direction direction, const std::string& path, FileRange range,
                     std::int32_t code);

// why: "the deadline passed", and during what.
Error deadline_error(std::string attempted, const std::string& path, std::string why);

// Of a read under policy direct whose file goes on where the vendor's library said that it ends.
Error false_end_error(const std::string& path, FileRange range);

}  // namespace straightway::drive
