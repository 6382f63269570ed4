#include "memory/peer_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "os/descriptor.hpp"
#include "os/facts.hpp"
#include "os/peer_facts.hpp"
#include "os/system_text.hpp"

namespace straightway::memory {
namespace {

constexpr std::array<std::string_view, 5> gpu_drivers = {"nvidia", "amdgpu", "nouveau", "xe",
                                                         "i915"};

Error refused(const std::string& pci_device, std::uint64_t size_bytes, ErrorKind kind, int code,
              std::string why, std::string advice) {
  return {kind,
          code == 0 ? ErrorOrigin::straightway : ErrorOrigin::system,
          code,
          "allocate " + std::to_string(size_bytes) + " bytes of the memory of PCI device",
          pci_device,
          {},
          std::move(why),
          std::move(advice)};
}

bool is_gpu(const std::string& folder) {
  const std::string driver(os::base_name(os::read_link(folder + "/driver").value_or("")));
  const auto kind = os::read_text(folder + "/class").value_or("");
  return kind.starts_with("0x03") || std::ranges::count(gpu_drivers, driver) > 0;
}

Error map_error(const std::string& pci_device, std::uint64_t size_bytes, const std::string& folder,
                int code) {
  std::string why = os::errno_text(code);
  if (code == ENOMEM || code == EINVAL) {
    const auto available = os::read_number(folder + "/available");
    if (available) why += " (" + std::to_string(*available) + " bytes are available)";
  }
  const bool denied = code == EACCES || code == EPERM;
  return refused(pci_device, size_bytes, os::errno_kind(code), code, std::move(why),
                 denied ? "run as root, or give yourself " + folder + "/allocate"
                        : "ask for less, or free what others hold of it");
}

}  // namespace

Result<std::shared_ptr<const PeerMapping>> PeerMapping::allocate(const std::string& pci_device,
                                                                 std::uint64_t size_bytes,
                                                                 const std::string& root) {
  const auto folder = os::pci_folder(pci_device, root);
  if (!os::is_pci_address(pci_device) || !os::exists(folder)) {
    return refused(pci_device, size_bytes, ErrorKind::not_found, 0, "there is no such PCI device",
                   "give its address as lspci -D shows it, 0000:02:00.0");
  }
  if (!os::publishes_memory(pci_device, root)) {
    return refused(pci_device, size_bytes, ErrorKind::unsupported, 0,
                   "the kernel publishes no memory of it (" + folder + "/p2pmem is not there)",
                   "use Linux 6.2 or newer with CONFIG_PCI_P2PDMA, and a driver that publishes it");
  }
  if (is_gpu(folder)) {
    return refused(pci_device, size_bytes, ErrorKind::unsupported, 0,
                   "it is a GPU, whose memory must be allocated by its own driver",
                   "allocate it there, and adopt the mapping");
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto rounded = (size_bytes + page - 1) & ~(page - 1);
  const auto pool = folder + "/p2pmem";
  if (size_bytes == 0 || rounded < size_bytes) {
    return map_error(pci_device, size_bytes, pool, EINVAL);
  }
  const os::Descriptor file(::open((pool + "/allocate").c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return map_error(pci_device, size_bytes, pool, errno);
  void* address = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return map_error(pci_device, size_bytes, pool, errno);
  ::madvise(address, rounded, MADV_DONTFORK);  // the drive may write it while a child lives
  auto mapping = std::make_shared<PeerMapping>(pci_device, reinterpret_cast<std::uint64_t>(address),
                                               size_bytes);
  mapping->owner_ = ::getpid();
  return std::shared_ptr<const PeerMapping>(std::move(mapping));
}

PeerMapping::~PeerMapping() {
  // A forked child has no mapping there, and may have made another.
  if (owner_ != 0 && owner_ == ::getpid()) ::munmap(reinterpret_cast<void*>(address_), size_bytes_);
}

Result<void> PeerMappings::add(std::shared_ptr<const PeerMapping> mapping) {
  const std::lock_guard lock(mutex_);
  const auto overlaps = [&](const auto& known) {
    return mapping->address() < known->address() + known->size_bytes() &&
           known->address() < mapping->address() + mapping->size_bytes();
  };
  if (std::ranges::any_of(mappings_, overlaps)) {
    return Error{ErrorKind::invalid_argument,
                 ErrorOrigin::straightway,
                 0,
                 "adopt peer memory of",
                 mapping->device(),
                 {},
                 "this Context knows memory there already",
                 "adopt it once, and keep the PeerMemory"};
  }
  mappings_.push_back(std::move(mapping));
  count_.store(mappings_.size());
  return {};
}

void PeerMappings::remove(const PeerMapping* mapping) {
  const std::lock_guard lock(mutex_);
  std::erase_if(mappings_, [&](const auto& known) { return known.get() == mapping; });
  count_.store(mappings_.size());
}

Result<std::shared_ptr<const PeerMapping>> PeerMappings::find(std::uint64_t address,
                                                              std::uint64_t size_bytes) const {
  if (count_.load(std::memory_order_acquire) == 0) return std::shared_ptr<const PeerMapping>();
  const std::lock_guard lock(mutex_);
  for (const auto& mapping : mappings_) {
    if (address < mapping->address() || address - mapping->address() >= mapping->size_bytes()) {
      continue;
    }
    const auto left = mapping->size_bytes() - (address - mapping->address());
    if (size_bytes <= left) return mapping;
    return Error{ErrorKind::invalid_argument,
                 ErrorOrigin::straightway,
                 0,
                 "use " + std::to_string(size_bytes) + " bytes of peer memory",
                 "",
                 {},
                 "only " + std::to_string(left) + " bytes are there",
                 "give a smaller size, or larger memory"};
  }
  return std::shared_ptr<const PeerMapping>();
}

}  // namespace straightway::memory
