// SPDX-License-Identifier: BSD-3-Clause
#include "job_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "request.hpp"
#include "whole_file.hpp"
#if STRETTO_ZSTD
#include <zstd.h>
#endif

namespace stretto::modelling {
namespace {

using record::Header;
using record::kStreams;
using record::Recording;
using record::Span;
using record::Stream;

constexpr char kJobMagic[8] = {'S', 'T', 'R', 'E', 'T', 'J', 'O', 'B'};
constexpr std::uint32_t kJobVersion = 1;
enum Method : std::uint32_t { kStored = 0, kZstd = 1 };
struct JobHeader {
  char magic[8];
  std::uint32_t version, method;
  std::uint64_t bytes;
};
constexpr std::uint64_t kMostRanks = 1u << 24;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

std::vector<std::uint8_t> read_file(const std::string& name) {
  const std::string text = whole_file(name);
  if (text.empty()) stop(name + " cannot be read, or is empty");
  return {text.begin(), text.end()};
}

bool unpack(const JobHeader& header, Span packed, std::vector<std::uint8_t>& block) {
  if (header.bytes > kMostBytes) return false;
  if (header.method == kStored) {
    block.assign(packed.data, packed.data + packed.size);
    return block.size() == header.bytes;
  }
#if STRETTO_ZSTD
  if (header.method == kZstd) {
    if (ZSTD_getFrameContentSize(packed.data, packed.size) != header.bytes) return false;
    block.resize(header.bytes);
    ZSTD_DCtx* const context = ZSTD_createDCtx();
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 31);
    const std::size_t read = ZSTD_decompressDCtx(context, block.data(), block.size(), packed.data, packed.size);
    ZSTD_freeDCtx(context);
    return read == header.bytes;
  }
#endif
  return false;
}

void append(std::vector<std::uint8_t>& to, const void* data, std::size_t bytes) {
  const auto* const first = static_cast<const std::uint8_t*>(data);
  to.insert(to.end(), first, first + bytes);
}

std::vector<std::uint8_t> packed(const std::vector<std::uint8_t>& block, std::uint32_t* method) {
#if STRETTO_ZSTD
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 9);
  ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 27);
  std::vector<std::uint8_t> small(ZSTD_compressBound(block.size()));
  const std::size_t bytes = ZSTD_compress2(context, small.data(), small.size(), block.data(), block.size());
  ZSTD_freeCCtx(context);
  if (!ZSTD_isError(bytes)) {
    small.resize(bytes);
    *method = kZstd;
    return small;
  }
#endif
  *method = kStored;
  return block;
}

}  // namespace

JobFile::JobFile(const std::vector<std::string>& names) {
  if (names.empty()) stop("no recording is named");
  for (const std::string& name : names) {
    bytes_.push_back(read_file(name));
    if (bytes_.back().size() >= sizeof(JobHeader) && std::memcmp(bytes_.back().data(), kJobMagic, 8) == 0)
      take_packed(name);
    else
      take_rank(name);
  }
  for (std::size_t rank = 0; rank < recordings_.size(); ++rank) {
    if (recordings_[rank] == nullptr)
      stop("the recording of rank " + std::to_string(rank) + " of " + std::to_string(recordings_.size()) +
           " is missing");
  }
}

void JobFile::add(std::unique_ptr<Recording> recording, const std::string& name) {
  const auto rank = static_cast<std::size_t>(recording->header().rank);
  const auto ranks = static_cast<std::size_t>(recording->header().ranks);
  if (ranks > kMostRanks) stop(name + ": its number of ranks is wrong");
  if (recordings_.empty()) recordings_.resize(ranks);
  if (recordings_.size() != ranks) stop(name + " is of another job: of " + std::to_string(ranks) + " ranks");
  if (recordings_[rank] != nullptr) stop(name + " has rank " + std::to_string(rank) + " again");
  recordings_[rank] = std::move(recording);
}

void JobFile::take_rank(const std::string& name) {
  auto recording = std::make_unique<Recording>();
  if (!recording->read({bytes_.back().data(), bytes_.back().size()})) stop(name + ": " + recording->failure());
  add(std::move(recording), name);
  bytes_.pop_back();  // its streams are copies
}

void JobFile::take_packed(const std::string& name) {
  JobHeader header;
  std::memcpy(&header, bytes_.back().data(), sizeof header);
  if (header.version != kJobVersion) stop(name + ": a recording of another version of Stretto");
#if !STRETTO_ZSTD
  if (header.method == kZstd) stop(name + " is packed by zstd, which this build lacks: install libzstd-dev");
#endif
  std::vector<std::uint8_t> block;
  if (!unpack(header, {bytes_.back().data() + sizeof header, bytes_.back().size() - sizeof header}, block))
    stop(name + " is damaged");
  bytes_.back() = std::move(block);
  const std::vector<std::uint8_t>& all = bytes_.back();
  std::uint64_t ranks = 0;
  std::size_t at = sizeof ranks;
  const auto has = [&](std::uint64_t bytes) {
    if (bytes > all.size() - at) stop(name + " is damaged");
  };
  if (all.size() < at) stop(name + " is damaged");
  std::memcpy(&ranks, all.data(), sizeof ranks);
  if (ranks > kMostRanks) stop(name + " is damaged");
  has(ranks * (sizeof(Header) + kStreams * sizeof(std::uint64_t)));
  const std::uint8_t* const headers = all.data() + at;
  const std::uint8_t* const lengths = headers + ranks * sizeof(Header);
  at += ranks * (sizeof(Header) + kStreams * sizeof(std::uint64_t));
  std::vector<Span> spans(ranks * kStreams);
  for (int stream = 0; stream < kStreams; ++stream) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::size_t i = rank * kStreams + static_cast<std::size_t>(stream);
      std::uint64_t length = 0;
      std::memcpy(&length, lengths + i * sizeof length, sizeof length);
      has(length);
      spans[i] = {all.data() + at, static_cast<std::size_t>(length)};
      at += length;
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto recording = std::make_unique<Recording>();
    Header its;
    std::memcpy(&its, headers + rank * sizeof its, sizeof its);
    Span streams[kStreams];
    std::copy_n(&spans[rank * kStreams], kStreams, streams);
    if (!recording->read(its, streams)) stop(name + ": " + recording->failure());
    add(std::move(recording), name);
  }
}

bool JobFile::has_one_clock() const {
  if (of(0).header().one_clock != 0) return true;
  return std::all_of(recordings_.begin(), recordings_.end(),
                     [&](const auto& each) { return std::strcmp(each->header().host, of(0).header().host) == 0; });
}

std::vector<double> JobFile::starts() const {
  std::vector<double> found(recordings_.size(), 0);
  if (!has_one_clock()) return found;
  std::uint64_t earliest = of(0).header().first_ns;
  for (const auto& each : recordings_) earliest = std::min(earliest, each->header().first_ns);
  for (std::size_t r = 0; r < found.size(); ++r)
    found[r] = static_cast<double>(recordings_[r]->header().first_ns - earliest) * 1e-9;
  return found;
}

std::uint64_t JobFile::pack(const std::string& name) const {
  std::vector<std::uint8_t> block;
  const auto ranks = static_cast<std::uint64_t>(recordings_.size());
  append(block, &ranks, sizeof ranks);
  for (const auto& each : recordings_) append(block, &each->header(), sizeof(Header));
  for (const auto& each : recordings_) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const std::uint64_t length = each->stream(static_cast<Stream>(stream)).size;
      append(block, &length, sizeof length);
    }
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    for (const auto& each : recordings_) {
      const Span span = each->stream(static_cast<Stream>(stream));
      append(block, span.data, span.size);
    }
  }
  JobHeader header{};
  std::memcpy(header.magic, kJobMagic, sizeof header.magic);
  header.version = kJobVersion;
  header.bytes = block.size();
  const std::vector<std::uint8_t> small = packed(block, &header.method);
  std::FILE* const file = std::fopen(name.c_str(), "wb");
  const bool good = file != nullptr && std::fwrite(&header, sizeof header, 1, file) == 1 &&
                    std::fwrite(small.data(), 1, small.size(), file) == small.size();
  if ((file != nullptr && std::fclose(file) != 0) || !good) stop(name + " cannot be written");
  return sizeof header + small.size();
}

}  // namespace stretto::modelling
