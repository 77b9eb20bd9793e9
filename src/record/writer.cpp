// SPDX-License-Identifier: BSD-3-Clause
#include "record/writer.hpp"

#include <cstring>

#include "sys/sys.hpp"

namespace stretto::record {
namespace {

constexpr std::size_t kRegionBytes = 16 * kChunkBytes;  // mapped at a time
constexpr std::size_t kVarintBytes = 10;

std::size_t varint(std::uint8_t* to, std::uint64_t value) {
  std::size_t n = 0;
  for (; value >= 128; value >>= 7) to[n++] = static_cast<std::uint8_t>(value | 128);
  to[n++] = static_cast<std::uint8_t>(value);
  return n;
}
std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
void push_varint(Array<std::uint8_t>& to, std::uint64_t value) {
  std::uint8_t bytes[kVarintBytes];
  const std::size_t n = varint(bytes, value);
  for (std::size_t i = 0; i < n; ++i) to.push(bytes[i]);
}

std::uint64_t hash_of(const std::int64_t* words, std::size_t size) {
  std::uint64_t hash = size;
  for (std::size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<std::uint64_t>(words[i])) * std::uint64_t{0x9E3779B97F4A7C15};
    hash ^= hash >> 29;
  }
  return hash;
}

void copy_text(char (&to)[kTextBytes], const char* from) {
  std::strncpy(to, from, kTextBytes - 1);
  to[kTextBytes - 1] = 0;
}

}  // namespace

// ---- The file ----

int Writer::open(const char* path, const About& about) {
  if (!history_.resize(kHistory, 0) || !pairs_.resize(kPairs, 0) || !grow_places()) return ENOMEM;
  if (const int error = sys::growing_file_make(path, &file_)) return error;
  void* memory = nullptr;
  if (const int error = sys::growing_file_map(file_, 0, kRegionBytes, &memory)) {
    sys::close_descriptor(file_);
    return error;
  }
  file_bytes_ = kRegionBytes;
  header_ = static_cast<Header*>(memory);
  free_ = static_cast<std::uint8_t*>(memory) + kChunkBytes;
  free_end_ = static_cast<std::uint8_t*>(memory) + kRegionBytes;
  header_->chunk_bytes = kChunkBytes;
  header_->rank = about.rank;
  header_->ranks = about.ranks;
  header_->bound = about.bound;
  copy_text(header_->host, about.host);
  copy_text(header_->mpi, about.mpi);
  copy_text(header_->program, about.program);
  copy_text(header_->processors, about.processors);
  header_->first_counter = sys::counter();
  header_->first_ns = sys::real_ns();
  mark_time();
  header_->version = kVersion;
  std::memcpy(header_->magic, kMagic, sizeof kMagic);
  return 0;
}

void Writer::set_clock(std::uint64_t first_ns, std::uint64_t last_ns) {
  has_other_clock_ = true;
  header_->one_clock = 1;
  header_->first_ns = first_ns;
  header_->last_ns = last_ns;
  header_->first_counter = 0;
  header_->last_counter = last_ns - first_ns;
}

void Writer::mark_time() {
  if (has_other_clock_) return;
  header_->last_counter = sys::counter();
  header_->last_ns = sys::real_ns();
}

void Writer::finish() {
  if (file_ < 0) return;
  if (failure_ == 0) {
    put_totals();
    mark_time();
    header_->finished = 1;
  }
  sys::close_descriptor(file_);
  file_ = -1;
  failure_ = EBADF;
}

bool Writer::next_chunk(Stream stream) {
  if (failure_ != 0) return false;
  if (free_ == free_end_) {
    void* memory = nullptr;
    failure_ = sys::growing_file_map(file_, file_bytes_, kRegionBytes, &memory);
    if (failure_ != 0) return false;
    file_bytes_ += kRegionBytes;
    free_ = static_cast<std::uint8_t*>(memory);
    free_end_ = free_ + kRegionBytes;
  }
  Open& open = of(stream);
  if (open.chunk != nullptr) sys::unmap(open.chunk, kChunkBytes);
  open.chunk = reinterpret_cast<Chunk*>(free_);
  open.at = free_ + sizeof(Chunk);
  open.end = free_ + kChunkBytes;
  open.chunk->stream = static_cast<std::uint32_t>(stream);
  free_ += kChunkBytes;
  mark_time();
  return true;
}

// Makes room for so many bytes in one chunk.
bool Writer::need(Stream stream, std::size_t bytes) {
  const Open& open = of(stream);
  return static_cast<std::size_t>(open.end - open.at) >= bytes || next_chunk(stream);
}

// The bytes are there before they count: the process may be killed between the two.
void Writer::advance(Stream stream, std::size_t bytes) {
  Open& open = of(stream);
  asm volatile("" ::: "memory");
  open.at += bytes;
  open.chunk->used += static_cast<std::uint32_t>(bytes);
}

void Writer::put(Stream stream, const std::uint8_t* bytes, std::size_t size) {
  while (size > 0) {
    if (!need(stream, 1)) return;
    const Open& open = of(stream);
    const auto room = static_cast<std::size_t>(open.end - open.at);
    const std::size_t part = size < room ? size : room;
    std::memcpy(open.at, bytes, part);
    advance(stream, part);
    bytes += part;
    size -= part;
  }
}

void Writer::put_varint(Stream stream, std::uint64_t value) {
  if (!need(stream, kVarintBytes)) return;
  advance(stream, varint(of(stream).at, value));
}

// ---- Definitions and terms ----

void Writer::put_definition(Definition kind, const std::uint8_t* bytes, std::size_t size) {
  put_varint(Stream::definitions, static_cast<std::uint64_t>(kind));
  put_varint(Stream::definitions, size);
  put(Stream::definitions, bytes, size);
  if (failure_ == 0) mark_time();
}

void Writer::define(Definition kind, const std::int64_t* values, std::size_t size) {
  scratch_.clear();
  for (std::size_t i = 0; i < size; ++i) push_varint(scratch_, zigzag(values[i]));
  if (scratch_.failed()) failure_ = ENOMEM;
  put_definition(kind, scratch_.data(), scratch_.size());
}

void Writer::define(Definition kind, std::uint64_t number, const char* text) {
  scratch_.clear();
  push_varint(scratch_, number);
  for (const char* c = text; *c != 0; ++c) scratch_.push(static_cast<std::uint8_t>(*c));
  if (scratch_.failed()) failure_ = ENOMEM;
  put_definition(kind, scratch_.data(), scratch_.size());
}

bool Writer::grow_places() {
  const std::size_t size = places_.empty() ? 256 : 2 * places_.size();
  places_.clear();
  if (!places_.resize(size, 0)) return false;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    std::size_t at = terms_[i].hash & (size - 1);
    while (places_[at] != 0) at = (at + 1) & (size - 1);
    places_[at] = static_cast<std::uint32_t>(i + 1);
  }
  return true;
}

bool Writer::has_words(std::uint32_t i, const std::int64_t* words, std::size_t size) const {
  const Term& known = terms_[i];
  return known.size == size && std::memcmp(words_.data() + known.first, words, size * sizeof *words) == 0;
}

std::uint32_t Writer::term(const std::int64_t* words, std::size_t size) {
  if (expected_at_ != kNowhere) {
    const std::uint32_t expected = history_[expected_at_ % kHistory];
    if (expected >= first_term_ && has_words(expected - first_term_, words, size)) return expected;
  }
  const std::uint64_t hash = hash_of(words, size);
  std::size_t at = hash & (places_.size() - 1);
  for (; places_[at] != 0; at = (at + 1) & (places_.size() - 1)) {
    const std::uint32_t i = places_[at] - 1;
    if (terms_[i].hash == hash && has_words(i, words, size)) return first_term_ + i;
  }
  if (terms_.size() == kMostTerms) {
    forget_terms();
    at = hash & (places_.size() - 1);
  }
  Term made{};
  made.hash = hash;
  made.first = static_cast<std::uint32_t>(words_.size());
  made.size = static_cast<std::uint32_t>(size);
  for (std::size_t i = 0; i < size; ++i) words_.push(words[i]);
  terms_.push(made);
  if (words_.failed() || terms_.failed()) {
    failure_ = ENOMEM;
    return first_term_;
  }
  places_[at] = static_cast<std::uint32_t>(terms_.size());
  if (2 * terms_.size() > places_.size() && !grow_places()) failure_ = ENOMEM;
  define(Definition::term, words, size);
  return first_term_ + static_cast<std::uint32_t>(terms_.size()) - 1;
}

// An irregular program has ever new terms. Then all are forgotten, and come again with new numbers.
void Writer::forget_terms() {
  put_totals();
  first_term_ += static_cast<std::uint32_t>(terms_.size());
  terms_.clear();
  words_.clear();
  const std::size_t size = places_.size();
  places_.clear();
  (void)places_.resize(size, 0);  // it has the memory
}

void Writer::put_totals() {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    if (term.calls == 0) continue;
    put_varint(Stream::totals, first_term_ + i);
    for (const std::uint64_t value :
         {term.calls, term.gap_ticks, term.duration_ticks, term.longest_gap, term.longest_duration})
      put_varint(Stream::totals, value);
  }
}

// ---- Calls ----

void Writer::put_term(std::uint32_t term) {
  const std::uint64_t now = count_;
  const bool expected =
      expected_at_ != kNowhere && now - expected_at_ < kHistory && history_[expected_at_ % kHistory] == term;
  if (expected) {
    ++expected_at_;
    ++matched_;
  } else {
    matched_ = 0;
    copy_length_ = nullptr;
  }
  if (copy_length_ != nullptr) {
    std::uint64_t length = 0;
    std::memcpy(&length, copy_length_, sizeof length);
    ++length;
    std::memcpy(copy_length_, &length, sizeof length);
  } else if (matched_ > kCopyFrom && need(Stream::sequence, 1 + kVarintBytes + sizeof(std::uint64_t))) {
    std::uint8_t* const token = of(Stream::sequence).at;
    token[0] = kCopy;
    const std::size_t n = 1 + varint(token + 1, now + 1 - expected_at_);
    const std::uint64_t length = 1;
    std::memcpy(token + n, &length, sizeof length);
    copy_length_ = token + n;
    advance(Stream::sequence, n + sizeof length);
  } else if (need(Stream::sequence, 1 + kVarintBytes)) {
    std::uint8_t* const token = of(Stream::sequence).at;
    token[0] = term < kWide ? static_cast<std::uint8_t>(term) : kWide;
    advance(Stream::sequence, term < kWide ? 1 : 1 + varint(token + 1, term));
  }
  std::uint64_t& pair = pairs_[(previous_ * std::uint64_t{0x9E3779B1} ^ term * std::uint64_t{0x85EBCA77}) % kPairs];
  if (!expected) expected_at_ = pair != 0 && history_[(pair - 1) % kHistory] == term ? pair : kNowhere;
  pair = now + 1;
  history_[now % kHistory] = term;
  previous_ = term;
  ++count_;
}

void Writer::put_time(Stream stream, Times& times, TimeWriter::Expected& expected, std::uint64_t ticks) {
  std::uint16_t code = 0;
  if (times.writer.leave_out(static_cast<double>(ticks), header_->bound, expected, &code)) {
    if (times.run != nullptr && *times.run < kExplicit - 1) {
      ++*times.run;
      return;
    }
    if (!need(stream, 1)) return;
    times.run = of(stream).at;
    *times.run = 1;
    advance(stream, 1);
    return;
  }
  times.run = nullptr;
  if (!need(stream, 2)) return;
  std::uint8_t* const at = of(stream).at;
  at[0] = static_cast<std::uint8_t>(kExplicit | code >> 8);
  at[1] = static_cast<std::uint8_t>(code);
  advance(stream, 2);
}

void Writer::call(std::uint32_t number, std::uint64_t gap, std::uint64_t duration, double processor) {
  if (failure_ != 0) return;
  Term& term = terms_[number - first_term_];
  put_term(number);
  put_time(Stream::gaps, gaps_, term.gap, gap);
  put_time(Stream::durations, durations_, term.duration, duration);
  ++term.calls;
  term.gap_ticks += gap;
  term.duration_ticks += duration;
  if (gap > term.longest_gap) term.longest_gap = gap;
  if (duration > term.longest_duration) term.longest_duration = duration;
  if (processor >= 0) {
    put_varint(Stream::processor, count_ - last_processor_);
    put_varint(Stream::processor, static_cast<std::uint64_t>(processor));
    last_processor_ = count_;
  }
}

}  // namespace stretto::record
