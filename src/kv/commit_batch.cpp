// SPDX-License-Identifier: BSD-3-Clause
#include "kv/commit_batch.hpp"

#include <cstdlib>

namespace stretto::kv {

CommitBatch::~CommitBatch() { std::free(data_); }

bool CommitBatch::reserve(std::size_t more) {
  if (capacity_ - bytes_ >= more) return true;
  const std::size_t capacity = (bytes_ + more) * 2;
  void* const larger = std::realloc(data_, capacity);
  if (!larger) return false;
  data_ = static_cast<char*>(larger);
  capacity_ = capacity;
  return true;
}

const char* CommitBatch::seal(std::size_t* bytes) {
  if (is_empty()) {
    if (!reserve(sizeof kParcelStamp)) return nullptr;
    std::memcpy(data_, &kParcelStamp, sizeof kParcelStamp);
    bytes_ = sizeof kParcelStamp;
  }
  *bytes = bytes_;
  return data_;
}

bool CommitBatch::add(const char* key, const Value& value) {
  const ParcelHead head{static_cast<std::uint32_t>(std::strlen(key) + 1), value.bytes, value.type};
  if (!reserve(sizeof kParcelStamp + sizeof head + head.key_bytes + value.bytes)) return false;
  std::size_t bytes = 0;
  char* to = const_cast<char*>(seal(&bytes)) + bytes;
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to += sizeof head, key, head.key_bytes);
  if (value.bytes != 0) std::memcpy(to + head.key_bytes, value.data, value.bytes);
  bytes_ += sizeof head + head.key_bytes + value.bytes;
  return true;
}

}  // namespace stretto::kv
