// SPDX-License-Identifier: BSD-3-Clause
// One of the two streams of a connection, and the frames that are half through it. Private to the
// connection.
#pragma once
#include "sys/sys.hpp"
#include "transport/bulk/message.hpp"

namespace stretto::transport::bulk {

struct EagerSlot {  // an eager message that has come before its receive
  Key key;
  std::uint32_t bytes = 0;
  bool used = false, complete = false;
  char* data = nullptr;  // kEagerBytes, or none yet
  Message* waiting = nullptr;
};

struct IncomingFrame {
  enum class Into : std::uint8_t { head, message, slot, words, sink };
  char head_bytes[Head::kBytes];
  std::uint32_t head_got = 0;
  Into into = Into::head;
  Head head;
  std::uint64_t at = 0, left = 0;  // of the payload
  Message* message = nullptr;
  EagerSlot* slot = nullptr;
  char words[kMostWords];

  [[nodiscard]] bool fills(const Message* other) const { return into == Into::message && message == other; }
};

struct OutgoingFrame {
  char head[Head::kBytes + kMostWords];
  std::uint32_t head_bytes = 0;  // 0: there is no frame
  const char* payload = nullptr;
  std::uint64_t payload_bytes = 0, gone = 0;
  Message* message = nullptr;  // whose payload it is
  char* copy = nullptr;        // of the payload of a message that has ended meanwhile
  bool is_refused = false;     // the payload is that of `slot`
  std::uint32_t slot = 0;
};

struct Track {
  int stream = -1;
  sys::FileId file;
  bool readable = false, writable = false, watched_for_room = false;
  bool has_ended = false;  // the peer's end is closed, and all that came is read
  std::size_t reported_from = 1;
  std::uint32_t kept_bytes = 0;  // as sys::stream_keeps
  IncomingFrame in;
  OutgoingFrame out;
};

}  // namespace stretto::transport::bulk
