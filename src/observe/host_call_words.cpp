// SPDX-License-Identifier: BSD-3-Clause
#include "observe/host_call_words.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace stretto::observe {
namespace {

using shm::Awaited;
using ull = unsigned long long;

// Appends to a text, and cuts what does not fit.
class Text {
 public:
  template <std::size_t n>
  explicit Text(char (&text)[n]) : text_(text), capacity_(n) {
    text_[0] = 0;
  }
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int more = std::vsnprintf(text_ + length_, capacity_ - length_, format, arguments);
    va_end(arguments);
    if (more > 0) length_ += static_cast<std::size_t>(more);
    if (length_ >= capacity_) length_ = capacity_ - 1;
  }

 private:
  char* text_;
  std::size_t capacity_, length_ = 0;
};

void add_rank(Text& text, const Awaited& part) {
  if (part.rank == Awaited::kAny) return text.add("any rank");
  text.add("%d", part.rank);
  if (part.world >= 0 && part.world != part.rank) text.add(" (rank %d of the job)", part.world);
}

void add_message(Text& text, const Awaited& part) {
  text.add(part.what == Awaited::What::send ? "to " : "from ");
  add_rank(text, part);
  if (part.tag == Awaited::kAny)
    text.add(", any tag");
  else
    text.add(", tag %d", part.tag);
  if (part.bytes != Awaited::kNoBytes) text.add(", %llu byte%s", ull{part.bytes}, part.bytes == 1 ? "" : "s");
  text.add(", on %s", part.where);
}

}  // namespace

AwaitedWords::AwaitedWords(const Awaited& part, const shm::Modules& modules, bool made_elsewhere) {
  Text words(text);
  switch (part.what) {
    case Awaited::What::send:
    case Awaited::What::receive: add_message(words, part); break;
    case Awaited::What::target:
      words.add("rank ");
      add_rank(words, part);
      words.add(" of %s", part.where);
      break;
    case Awaited::What::request: words.add("%s", part.where[0] != 0 ? part.where : "a request"); break;
  }
  const shm::CallSite site(modules, part.caller);
  if (made_elsewhere && site.text[0] != 0) words.add(", begun at %s", site.text);
}

HostCallWords::HostCallWords(const shm::HostCall& call, const shm::Modules& modules) {
  constexpr unsigned kMost = 3;
  Text words(text);
  words.add("%s", call.name);
  const unsigned known = call.known(), told = known < kMost ? known : kMost;
  const bool has_requests = std::strstr(call.name, "Wait") != nullptr || std::strstr(call.name, "Test") != nullptr;
  if (call.kind == shm::HostCallKind::all && call.members != 0) {
    words.add(" (all %u ranks of %s)", call.members, call.where);
  } else if (told != 0) {
    words.add(" (");
    if (call.awaited > 1 && has_requests) words.add("%s of %u requests: ", call.any ? "one" : "all", call.awaited);
    for (unsigned i = 0; i < told; ++i)
      words.add("%s%s", i == 0 ? "" : "; ", AwaitedWords(call.parts[i], modules, has_requests).text);
    if (told < call.awaited) words.add("; ...");
    words.add(")");
  } else if (call.where[0] != 0) {
    words.add(" (%s)", call.where);
  }
}

HostCallSite::HostCallSite(const shm::HostCall& call, const shm::Modules& modules) {
  if (call.line[0] != 0)
    std::snprintf(text, sizeof text, "%s", call.line);
  else
    std::memcpy(text, shm::CallSite(modules, call.line_caller != 0 ? call.line_caller : call.caller).text, sizeof text);
}

}  // namespace stretto::observe
