#pragma once
// Registering files and buffers.

#include "cufile/session.hpp"

namespace straightway::cufile {

// What cuFileHandleRegister answers; *token is set on success alone.
abi::Code register_handle(Session& session, const abi::Descriptor& descriptor, void** token);
// Waits for what the file does. A token that is none (any more): nothing happens.
void deregister_handle(Session& session, void* token);

abi::Code register_buffer(Session& session, const void* base, std::size_t size_bytes);
abi::Code deregister_buffer(Session& session, const void* base);

// The device's memory that a PCI device may address, in KB; nullopt: there is no such device.
std::optional<std::uint64_t> bar_size_kb(int device);
std::array<char, 16> device_uuid(std::int32_t device);

}  // namespace straightway::cufile
