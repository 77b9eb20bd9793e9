// SPDX-License-Identifier: BSD-3-Clause
#include "record/reader.hpp"

#include <cstring>

#include "record/times.hpp"

namespace stretto::record {
namespace {

// Takes a varint from the front. False: there is none.
bool take(Span& from, std::uint64_t* value) {
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < from.size && i < 10; ++i) {
    found |= static_cast<std::uint64_t>(from.data[i] & 127) << (7 * i);
    if (from.data[i] < 128) {
      from = {from.data + i + 1, from.size - i - 1};
      *value = found;
      return true;
    }
  }
  return false;
}
bool take_signed(Span& from, std::int64_t* value) {
  std::uint64_t found = 0;
  if (!take(from, &found)) return false;
  *value = static_cast<std::int64_t>(found >> 1) ^ -static_cast<std::int64_t>(found & 1);
  return true;
}
bool take_bytes(Span& from, std::uint64_t size, Span* bytes) {
  if (size > from.size) return false;
  *bytes = {from.data, static_cast<std::size_t>(size)};
  from = {from.data + size, from.size - static_cast<std::size_t>(size)};
  return true;
}

// A token of the sequence: a term, or a copy.
struct Token {
  std::uint64_t term = 0, distance = 0, length = 0;  // of a copy: the last two
};
bool take_token(Span& from, Token* token) {
  *token = {};
  if (from.size == 0) return false;
  const std::uint8_t first = from.data[0];
  from = {from.data + 1, from.size - 1};
  if (first < kWide) {
    token->term = first;
    return true;
  }
  if (first == kWide) return take(from, &token->term);
  Span length;
  if (!take(from, &token->distance) || token->distance == 0 || !take_bytes(from, sizeof token->length, &length))
    return false;
  std::memcpy(&token->length, length.data, sizeof token->length);
  return true;
}

bool is_known(std::uint32_t version) { return version >= kOldestVersion && version <= kVersion; }

constexpr std::uint64_t kMostReach = 1u << 24;  // a reader keeps so many terms at most
constexpr std::int64_t kMostMembers = 1 << 26;

}  // namespace

bool Recording::fail(const char* why) {
  failure_ = why;
  return false;
}

bool Recording::read(Span file) {
  if (file.size < sizeof(Header) || std::memcmp(file.data, kMagic, sizeof kMagic) != 0)
    return fail("no recording of Stretto");
  std::memcpy(&header_, file.data, sizeof header_);
  if (!is_known(header_.version)) return fail("a recording of another version of Stretto");
  if (header_.chunk_bytes != kChunkBytes) return fail("its chunks have another length");
  if (!join(file)) return false;
  return measure();
}

bool Recording::read(const Header& header, const Span (&streams)[kStreams]) {
  header_ = header;
  if (std::memcmp(header_.magic, kMagic, sizeof kMagic) != 0 || !is_known(header_.version))
    return fail("a recording of another version of Stretto");
  for (int i = 0; i < kStreams; ++i) streams_[i] = streams[i];
  return measure();
}

bool Recording::join(Span file) {
  std::size_t bytes[kStreams] = {};
  const auto each = [&](const auto& with) {
    for (std::size_t at = kChunkBytes; at + kChunkBytes <= file.size; at += kChunkBytes) {
      Chunk chunk;
      std::memcpy(&chunk, file.data + at, sizeof chunk);
      if (chunk.stream == 0 || chunk.stream >= kStreams || chunk.used > kChunkRoom) continue;
      with(chunk, file.data + at + sizeof chunk);
    }
  };
  std::size_t all = 0;
  each([&](const Chunk& chunk, const std::uint8_t*) {
    bytes[chunk.stream] += chunk.used;
    all += chunk.used;
  });
  if (!joined_.resize(all, 0)) return fail("no memory");
  std::size_t first = 0;
  std::size_t filled[kStreams] = {};
  for (int i = 0; i < kStreams; ++i) {
    streams_[i] = {joined_.data() + first, bytes[i]};
    filled[i] = first;
    first += bytes[i];
  }
  each([&](const Chunk& chunk, const std::uint8_t* data) {
    std::memcpy(joined_.data() + filled[chunk.stream], data, chunk.used);
    filled[chunk.stream] += chunk.used;
  });
  return true;
}

bool Recording::measure() {
  header_.host[kTextBytes - 1] = header_.mpi[kTextBytes - 1] = 0;
  header_.program[kTextBytes - 1] = header_.processors[kTextBytes - 1] = 0;
  if (header_.rank < 0 || header_.ranks <= header_.rank) return fail("its rank is wrong");
  const std::uint64_t ticks = header_.last_counter - header_.first_counter;
  const std::uint64_t ns = header_.last_ns - header_.first_ns;
  if (ticks == 0 || ticks >> 62 != 0 || ns >> 62 != 0) return fail("its clock is wrong");
  seconds_a_tick_ = static_cast<double>(ns) * 1e-9 / static_cast<double>(ticks);
  first_word_.push(0);
  if (!define()) return failure_ != nullptr ? false : fail("no memory");
  if (!totals_.resize(terms(), {})) return fail("no memory");
  add_totals();
  Span left = stream(Stream::sequence);
  for (Token token; take_token(left, &token);) {
    if (token.distance > kMostReach) return fail("a copy reaches too far");
    if (token.distance > reach_) reach_ = token.distance;
  }
  return true;
}

bool Recording::define() {
  Span left = stream(Stream::definitions);
  std::uint64_t kind = 0, size = 0;
  Span bytes;
  while (take(left, &kind) && take(left, &size) && take_bytes(left, size, &bytes)) {
    bool good = true;
    switch (static_cast<Definition>(kind)) {
      case Definition::term: good = add_term(bytes); break;
      case Definition::function: good = add_text(functions_, bytes); break;
      case Definition::place: good = add_text(places_, bytes); break;
      case Definition::comm: good = add_communicator(bytes); break;
      case Definition::neighbors: good = add_neighbors(bytes); break;
      default: return fail("a definition of an unknown kind");
    }
    if (!good) return failure_ != nullptr ? false : fail("a definition is wrong");
  }
  return !(words_.failed() || first_word_.failed() || functions_.failed() || places_.failed() ||
           communicators_.failed() || members_.failed());
}

// Words lie as they are in the file: role, count, values.
bool Recording::add_term(Span bytes) {
  while (bytes.size > 0) {
    std::int64_t role = 0, count = 0;
    if (!take_signed(bytes, &role) || !take_signed(bytes, &count)) return false;
    if (role < 0 || role >= kRoles || count < 0 || static_cast<std::uint64_t>(count) > bytes.size) return false;
    words_.push(role);
    words_.push(count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t value = 0;
      if (!take_signed(bytes, &value)) return false;
      words_.push(value);
    }
  }
  return first_word_.push(words_.size());
}

bool Recording::add_text(Array<Text>& to, Span bytes) {
  Text text;
  if (!take(bytes, &text.number)) return false;
  text.text = reinterpret_cast<const char*>(bytes.data);
  text.size = bytes.size;
  return to.push(text);
}

bool Recording::add_communicator(Span bytes) {
  Communicator made;
  for (std::int64_t* const value : {&made.id, &made.flags, &made.rank, &made.size, &made.remote_size}) {
    if (!take_signed(bytes, value)) return false;
  }
  if (made.size < 0 || made.remote_size < 0 || made.size > kMostMembers || made.remote_size > kMostMembers ||
      made.rank < 0 || made.rank >= made.size)
    return false;
  made.first_member = static_cast<std::uint32_t>(members_.size());
  std::int64_t left = made.size + made.remote_size;
  while (left > 0) {
    std::int64_t first = 0, step = 0, count = 0;
    if (!take_signed(bytes, &first) || !take_signed(bytes, &step) || !take_signed(bytes, &count)) return false;
    if (count <= 0 || count > left || first < -1 || first > kMostMembers || step < -kMostMembers || step > kMostMembers)
      return false;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t member = first + i * step;
      if (member < -1 || member > kMostMembers) return false;
      members_.push(static_cast<std::int32_t>(member));
    }
    left -= count;
  }
  return communicators_.push(made);
}

bool Recording::add_neighbors(Span bytes) {
  std::int64_t id = 0;
  if (!take_signed(bytes, &id)) return false;
  Communicator* known = nullptr;
  for (Communicator& each : communicators_) {
    if (each.id == id) known = &each;
  }
  if (known == nullptr) return false;
  known->first_neighbor = static_cast<std::uint32_t>(members_.size());
  for (std::uint32_t* const counted : {&known->sources, &known->destinations}) {
    std::int64_t count = 0;
    if (!take_signed(bytes, &count) || count < 0 || static_cast<std::uint64_t>(count) > bytes.size) return false;
    *counted = static_cast<std::uint32_t>(count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rank = 0;
      if (!take_signed(bytes, &rank)) return false;
      members_.push(static_cast<std::int32_t>(rank));
    }
  }
  return true;
}

void Recording::add_totals() {
  Span left = stream(Stream::totals);
  std::uint64_t term = 0;
  while (take(left, &term)) {
    Totals read;
    for (std::uint64_t* const value :
         {&read.calls, &read.gap, &read.duration, &read.longest_gap, &read.longest_duration}) {
      if (!take(left, value)) return;
    }
    if (term < totals_.size()) totals_[term] = read;
  }
}

Values Recording::values(std::uint32_t term, Role role) const {
  for (std::uint64_t at = first_word_[term]; at + 1 < first_word_[term + 1]; at += 2 + words_[at + 1]) {
    if (words_[at] == static_cast<std::int64_t>(role))
      return {words_.data() + at + 2, static_cast<std::size_t>(words_[at + 1])};
  }
  return {};
}

namespace {
Text text_of(const Array<Text>& texts, Values number) {
  for (const Text& each : texts) {
    if (number && static_cast<std::int64_t>(each.number) == number.one(-1)) return each;
  }
  return {};
}
}  // namespace

Text Recording::function(std::uint32_t term) const { return text_of(functions_, values(term, Role::function)); }
Text Recording::place(std::uint32_t term) const { return text_of(places_, values(term, Role::place)); }

const Communicator* Recording::communicator(std::int64_t id) const {
  // As a rule they are numbered in their order.
  if (const auto place = static_cast<std::size_t>(id); place < communicators_.size() && communicators_[place].id == id)
    return &communicators_[place];
  for (const Communicator& each : communicators_) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

// ---- Calls ----

Calls::Calls(const Recording& recording)
    : recording_(&recording),
      tokens_(recording.stream(Stream::sequence)),
      processor_(recording.stream(Stream::processor)) {
  std::size_t size = 1;
  while (size <= recording.reach()) size *= 2;
  (void)history_.resize(size, 0);
  gaps_.left = recording.stream(Stream::gaps);
  durations_.left = recording.stream(Stream::durations);
  (void)gaps_.expected.resize(recording.terms(), -1);
  (void)durations_.expected.resize(recording.terms(), -1);
}

bool Calls::next_term(std::uint32_t* term) {
  const std::size_t mask = history_.size() - 1;
  while (copies_ == 0) {
    Token token;
    if (!take_token(tokens_, &token)) return false;
    if (token.distance == 0) {
      if (token.term >= recording_->terms()) return false;
      *term = static_cast<std::uint32_t>(token.term);
      history_[count_++ & mask] = *term;
      return true;
    }
    if (token.distance > count_) return false;
    distance_ = token.distance;
    copies_ = token.length;
  }
  --copies_;
  *term = history_[(count_ - distance_) & mask];
  history_[count_++ & mask] = *term;
  return true;
}

bool Calls::next_time(Times& times, std::uint32_t term, double* seconds) const {
  while (times.run == 0) {
    if (times.left.size == 0) return false;
    const std::uint8_t first = times.left.data[0];
    if (first < kExplicit) {
      times.run = first;
      times.left = {times.left.data + 1, times.left.size - 1};
      continue;
    }
    if (times.left.size < 2) return false;
    const auto code = static_cast<std::uint16_t>((first & (kExplicit - 1)) << 8 | times.left.data[1]);
    times.left = {times.left.data + 2, times.left.size - 2};
    times.expected[term] = static_cast<float>(ticks_of(code));
    *seconds = ticks_of(code) * recording_->seconds_a_tick();
    return true;
  }
  if (times.expected[term] < 0) return false;
  --times.run;
  *seconds = static_cast<double>(times.expected[term]) * recording_->seconds_a_tick();
  return true;
}

bool Calls::next(Call* call) {
  if (history_.failed() || gaps_.expected.failed() || durations_.expected.failed()) return false;
  if (!next_term(&call->term)) return false;
  if (!next_time(gaps_, call->term, &call->gap) || !next_time(durations_, call->term, &call->duration)) return false;
  call->processor = -1;
  if (next_processor_ < count_) {
    std::uint64_t after = 0, ticks = 0;
    if (take(processor_, &after) && take(processor_, &ticks) && after > 0) {
      next_processor_ += after;
      processor_ticks_ = static_cast<double>(ticks);
    } else {
      next_processor_ = ~std::uint64_t{0};
    }
  }
  if (next_processor_ == count_) call->processor = processor_ticks_ * recording_->seconds_a_tick();
  return true;
}

}  // namespace stretto::record
