#include "straightway/peer.hpp"

#include <limits>
#include <utility>

#include "api/engine.hpp"
#include "os/peer_facts.hpp"

namespace straightway {
namespace {

Result<std::shared_ptr<Engine>> engine_of(const std::shared_ptr<Context>& context) {
  if (context) return context->engine();
  auto standard = Context::process_default();
  if (!standard) return standard.error();
  return (*standard)->engine();
}

Error adopt_error(std::string why, std::string advice) {
  return {ErrorKind::invalid_argument,
          ErrorOrigin::straightway,
          0,
          "adopt peer memory",
          "",
          {},
          std::move(why),
          std::move(advice)};
}

Result<std::string> device_of(const Memory& memory, std::string_view named,
                              const std::string& root) {
  const auto address = reinterpret_cast<std::uint64_t>(memory.address);
  if (address == 0 || memory.size_bytes == 0 ||
      memory.size_bytes > std::numeric_limits<std::uint64_t>::max() - address) {
    return adopt_error("it has no address, no bytes, or ends beyond the address space",
                       "give a mapping of this process");
  }
  if (named.empty()) return os::device_of_mapping(address, memory.size_bytes, root);
  if (os::is_pci_address(named)) return std::string(named);
  return adopt_error("'" + std::string(named) + "' is no address of a PCI device",
                     "give it as lspci -D shows it, 0000:02:00.0");
}

}  // namespace

Result<PeerMemory> PeerMemory::allocate(std::string_view pci_device, std::size_t size_bytes,
                                        const std::shared_ptr<Context>& context) {
  auto engine = engine_of(context);
  if (!engine) return engine.error();
  auto mapping =
      memory::PeerMapping::allocate(std::string(pci_device), size_bytes, (*engine)->root());
  if (!mapping) return mapping.error();
  if (auto added = (*engine)->peer_mappings().add(*mapping); !added) return added.error();
  return PeerMemory(std::move(*engine), std::move(*mapping));
}

Result<PeerMemory> PeerMemory::adopt(Memory memory, std::string_view pci_device,
                                     const std::shared_ptr<Context>& context) {
  auto engine = engine_of(context);
  if (!engine) return engine.error();
  auto device = device_of(memory, pci_device, (*engine)->root());
  if (!device) return device.error();
  auto mapping = std::make_shared<const memory::PeerMapping>(
      std::move(*device), reinterpret_cast<std::uint64_t>(memory.address), memory.size_bytes);
  if (auto added = (*engine)->peer_mappings().add(mapping); !added) return added.error();
  return PeerMemory(std::move(*engine), std::move(mapping));
}

PeerMemory::PeerMemory(std::shared_ptr<Engine> engine,
                       std::shared_ptr<const memory::PeerMapping> mapping)
    : engine_(std::move(engine)), mapping_(std::move(mapping)) {}

PeerMemory::PeerMemory(PeerMemory&& other) noexcept = default;

PeerMemory& PeerMemory::operator=(PeerMemory&& other) noexcept {
  if (this != &other) {
    forget();
    engine_ = std::move(other.engine_);
    mapping_ = std::move(other.mapping_);
  }
  return *this;
}

PeerMemory::~PeerMemory() { forget(); }

void PeerMemory::forget() {
  if (mapping_) engine_->peer_mappings().remove(mapping_.get());
  mapping_.reset();
  engine_.reset();
}

Memory PeerMemory::memory() const {
  if (!mapping_) return {};
  return {reinterpret_cast<void*>(mapping_->address()),
          static_cast<std::size_t>(mapping_->size_bytes())};
}

const std::string& PeerMemory::device() const {
  static const std::string none;
  return mapping_ ? mapping_->device() : none;
}

}  // namespace straightway
