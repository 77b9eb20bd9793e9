// SPDX-License-Identifier: BSD-3-Clause
#include "transport/bulk/frame.hpp"

#include <bit>
#include <cstring>

namespace stretto::transport::bulk {
namespace {

template <class T>
void store(char* to, T value) {
  if constexpr (std::endian::native == std::endian::big) {
    for (std::size_t i = 0; i < sizeof value; ++i) to[i] = static_cast<char>(value >> (8 * i));
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

template <class T>
T load(const char* from) {
  T value = 0;
  if constexpr (std::endian::native == std::endian::big) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      value |= static_cast<T>(static_cast<unsigned char>(from[i])) << (8 * i);
  } else {
    std::memcpy(&value, from, sizeof value);
  }
  return value;
}

bool is_within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t total) {
  return offset <= total && bytes <= total - offset;
}

}  // namespace

void Head::write(char* to) const {
  store(to, static_cast<std::uint32_t>(kind));
  store(to + 4, key.index);
  store(to + 8, key.comm);
  store(to + 16, key.call);
  store(to + 24, offset);
  store(to + 32, bytes);
  store(to + 40, total);
}

bool Head::read(const char* from) {
  kind = static_cast<Kind>(load<std::uint32_t>(from));
  key = {load<std::uint64_t>(from + 8), load<std::uint64_t>(from + 16), load<std::uint32_t>(from + 4)};
  offset = load<std::uint64_t>(from + 24);
  bytes = load<std::uint64_t>(from + 32);
  total = load<std::uint64_t>(from + 40);
  return makes_sense();
}

bool Head::makes_sense() const {
  Reason reason;
  switch (kind) {
    case Kind::ask: return offset <= kMostBytes && bytes <= kMostRanges && total == 0;
    case Kind::grant: return offset == 0 && bytes != 0 && bytes <= kMostBytes && total == 0;
    case Kind::hurry: return bytes != 0 && is_within(offset, bytes, kMostBytes) && total == 0;
    case Kind::data:
      return total <= kMostBytes && bytes <= kPieceBytes && is_within(offset, bytes, total) &&
             (bytes != 0 || total == 0);
    case Kind::eager: return offset == 0 && bytes <= kEagerBytes && total == bytes;
    case Kind::ack: return offset == 0 && bytes == 0 && total == 0;
    case Kind::reach:
      return key == Key{} && bytes >= FabricAddress::kProviderBytes && bytes <= kMostWords && total == 0;
    case Kind::leave: return key == Key{} && offset == 0 && bytes == 0 && total == 0;
    case Kind::offer:
      return total <= kMostBytes && bytes != 0 && bytes <= kPieceBytes && is_within(offset, bytes, total);
    case Kind::taken: return key == Key{} && offset < Fabric::kSlots && bytes == 0 && total <= 1;
    case Kind::fail: return key.call == 0 && key.index == 0 && bytes == 0 && total == 0 && reason.read(offset);
    default: return false;
  }
}

void Offered::write(char* to) const {
  store(to, window.address);
  store(to + 8, window.key);
  store(to + 16, std::uint64_t{slot});
}

bool Offered::read(const char* from) {
  window = {load<std::uint64_t>(from), load<std::uint64_t>(from + 8)};
  const auto said = load<std::uint64_t>(from + 16);
  slot = static_cast<std::uint32_t>(said);
  return said < Fabric::kSlots;
}

std::uint32_t write_address(const FabricAddress& address, char* to) {
  std::memcpy(to, address.provider, FabricAddress::kProviderBytes);
  std::memcpy(to + FabricAddress::kProviderBytes, address.data, address.bytes);
  return static_cast<std::uint32_t>(FabricAddress::kProviderBytes) + address.bytes;
}

bool read_address(const char* from, const Head& head, FabricAddress* address) {
  static_assert(FabricAddress::kProviderBytes + FabricAddress::kMostBytes <= kMostWords);
  const std::uint64_t bytes = head.bytes - FabricAddress::kProviderBytes;
  if (bytes > FabricAddress::kMostBytes || from[FabricAddress::kProviderBytes - 1] != 0) return false;
  std::memcpy(address->provider, from, FabricAddress::kProviderBytes);
  std::memcpy(address->data, from + FabricAddress::kProviderBytes, bytes);
  address->format = static_cast<std::uint32_t>(head.offset);
  address->bytes = static_cast<std::uint32_t>(bytes);
  return true;
}

void write_ranges(const Range* ranges, std::uint32_t count, char* to) {
  for (std::uint32_t i = 0; i < count; ++i, to += sizeof(Range)) {
    store(to, ranges[i].offset);
    store(to + 8, ranges[i].bytes);
  }
}

bool read_ranges(const char* from, std::uint32_t count, Range* ranges) {
  for (std::uint32_t i = 0; i < count; ++i, from += sizeof(Range)) {
    ranges[i] = {load<std::uint64_t>(from), load<std::uint64_t>(from + 8)};
    if (ranges[i].bytes == 0 || !is_within(ranges[i].offset, ranges[i].bytes, kMostBytes)) return false;
  }
  return true;
}

}  // namespace stretto::transport::bulk
