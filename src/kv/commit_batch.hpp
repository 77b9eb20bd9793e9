// SPDX-License-Identifier: BSD-3-Clause
// The values of one commit on their way to other nodes. A batch has a stamp, then for each value
// its head, its key with a 0 behind it, and its bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kv/table.hpp"

namespace stretto::kv {

class CommitBatch {
 public:
  CommitBatch() = default;
  ~CommitBatch();
  CommitBatch(const CommitBatch&) = delete;
  CommitBatch& operator=(const CommitBatch&) = delete;

  // False: no memory. The batch keeps what it had.
  bool add(const char* key, const Value& value);
  void clear() { bytes_ = 0; }
  [[nodiscard]] bool is_empty() const { return bytes_ == 0; }
  // What to send, also for an empty batch. null: no memory.
  const char* seal(std::size_t* bytes);

 private:
  bool reserve(std::size_t more);

  char* data_ = nullptr;
  std::size_t bytes_ = 0, capacity_ = 0;
};

struct ParcelHead {
  std::uint32_t key_bytes;  // its 0 included
  std::uint32_t value_bytes;
  std::uint32_t type;
};
inline constexpr std::uint64_t kParcelStamp = 0x5374726b76503031u;

// Calls take(key, value) for each value. False: these bytes are no batch, or take() has returned
// false. The bytes come from another machine, so nothing in them is trusted.
template <class Take>
bool batch_read(const char* data, std::size_t bytes, Take take) {
  std::uint64_t stamp = 0;
  if (bytes < sizeof stamp) return false;
  std::memcpy(&stamp, data, sizeof stamp);
  if (stamp != kParcelStamp) return false;
  for (data += sizeof stamp, bytes -= sizeof stamp; bytes != 0;) {
    ParcelHead head;
    if (bytes < sizeof head) return false;
    std::memcpy(&head, data, sizeof head);
    const std::uint64_t text = std::uint64_t{head.key_bytes} + head.value_bytes;
    if (text > bytes - sizeof head || head.type > 0xffff) return false;
    const char* const key = data + sizeof head;
    if (head.key_bytes < 2 || std::memchr(key, 0, head.key_bytes) != key + head.key_bytes - 1) return false;
    if (!take(key, Value{key + head.key_bytes, head.value_bytes, static_cast<std::uint16_t>(head.type), 0}))
      return false;
    data += sizeof head + text;
    bytes -= sizeof head + text;
  }
  return true;
}

}  // namespace stretto::kv
