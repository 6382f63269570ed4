#pragma once
// Quantities as people read them. Plans and receipts print through these, so that both look alike.

#include <cstdint>
#include <string>

namespace straightway::plan {

// Powers of 1024 with two decimals: "0 bytes", "1 byte", "4095 bytes", "1.00 GiB". Whole KiB and
// MiB below 1024 stay whole: "4 KiB", "256 MiB".
std::string format_bytes(std::uint64_t size_bytes);

// Three digits: "0 ns", "850 ns", "12.3 us", "20.1 ms", "1.25 s", "150 s".
std::string format_duration_ns(std::uint64_t duration_ns);

// Powers of 1000, as links and disks are sold: "53.4 GB/s", "850 B/s". Where no time passed: "-".
std::string format_rate(std::uint64_t size_bytes, std::uint64_t duration_ns);

}  // namespace straightway::plan
