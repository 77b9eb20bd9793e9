// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/host/callers.hpp"

#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace stretto::mpi {
namespace {

constinit std::uintptr_t g_host = 0;
constinit IsComponent g_is_component = nullptr;
constinit FindObject g_find_object = nullptr;
constinit CallerRange* g_table = nullptr;  // sorted by address
constinit std::size_t g_ranges = 0;

const char* base_name(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// Addresses from the first to the last segment of some kind.
struct Span {
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
  void include(std::uintptr_t first, std::uintptr_t last) {
    begin = std::min(begin, first);
    end = std::max(end, last);
  }
  [[nodiscard]] bool has(std::uintptr_t address) const { return address >= begin && address < end; }
};

struct Spans {
  Span all;
  Span code;
};

Spans spans_of(const dl_phdr_info& info) {
  Spans spans;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr) & header = info.dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    spans.all.include(begin, begin + header.p_memsz);
    if ((header.p_flags & PF_X) != 0) spans.code.include(begin, begin + header.p_memsz);
  }
  return spans;
}

bool is_inside(const Span& object, const char* path) {
  return object.has(g_host) || (path != nullptr && g_is_component(base_name(path)));
}

// ---- The table ----

struct Object {
  Spans spans;
  const char* path;
  const ElfW(Dyn) * dynamic;  // null: it needs nothing
  const char* strings;        // of the dynamic section
  const char* soname;         // null: none
  bool lasts;
  bool followed;
};

struct Objects {
  Object* at;
  std::size_t count, room;
};

void read_dynamic(Object& object, const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  std::uintptr_t strings = 0;
  std::size_t soname = SIZE_MAX;
  for (const ElfW(Dyn)* entry = object.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) soname = entry->d_un.d_val;
  }
  // Some dynamic linkers leave this address relative to the object.
  if (strings != 0 && strings < object.spans.all.begin) strings += info.dlpi_addr;
  if (!object.spans.all.has(strings)) {  // the vdso of some kernels
    object.dynamic = nullptr;
    return;
  }
  object.strings = reinterpret_cast<const char*>(strings);
  if (soname != SIZE_MAX) object.soname = object.strings + soname;
}

int count_object(dl_phdr_info*, std::size_t, void* count) {
  ++*static_cast<std::size_t*>(count);
  return 0;
}

int add_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& objects = *static_cast<Objects*>(data);
  if (objects.count == objects.room) return 1;
  Object& object = objects.at[objects.count++] = {};
  object.spans = spans_of(*info);
  object.path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  read_dynamic(object, *info);
  return 0;
}

// The first match in load order. Objects loaded at program start come before all others.
Object* find_needed(const Objects& objects, const char* name) {
  for (std::size_t i = 0; i < objects.count; ++i) {
    const Object& object = objects.at[i];
    if (std::strcmp(object.soname != nullptr ? object.soname : base_name(object.path), name) == 0)
      return &objects.at[i];
  }
  return nullptr;
}

bool follow(const Objects& objects, Object& object) {
  bool more = false;
  object.followed = true;
  for (const ElfW(Dyn)* entry = object.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED) continue;
    Object* const needed = find_needed(objects, base_name(object.strings + entry->d_un.d_val));
    if (needed == nullptr || needed->lasts) continue;
    needed->lasts = more = true;
  }
  return more;
}

// Marks the program (the first object), the MPI library, and all that these need. The MPI library
// stays loaded because Stretto holds a handle of it.
void find_lasting(const Objects& objects) {
  for (std::size_t i = 0; i < objects.count; ++i) objects.at[i].lasts = i == 0 || objects.at[i].spans.all.has(g_host);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < objects.count; ++i) {
      Object& object = objects.at[i];
      if (object.lasts && !object.followed) more = follow(objects, object) || more;
    }
  }
}

void keep_lasting(const Objects& objects) {
  g_table = static_cast<CallerRange*>(std::malloc(objects.count * sizeof(CallerRange)));
  if (g_table == nullptr) return;  // then every call asks the dynamic linker
  for (std::size_t i = 0; i < objects.count; ++i) {
    const Object& object = objects.at[i];
    const Span& code = object.spans.code;
    if (object.lasts && code.end != 0) {
      g_table[g_ranges++] = {code.begin, code.end - code.begin, is_inside(object.spans.all, object.path)};
    }
  }
  std::sort(g_table, g_table + g_ranges, [](const CallerRange& a, const CallerRange& b) { return a.begin < b.begin; });
}

// Runs within a walk of dl_iterate_phdr, whose lock keeps objects loaded. Walks may be nested.
int make_table(dl_phdr_info*, std::size_t, void*) {
  Objects objects = {};
  dl_iterate_phdr(count_object, &objects.room);
  objects.at = static_cast<Object*>(std::malloc(objects.room * sizeof(Object)));
  if (objects.at == nullptr) return 1;
  dl_iterate_phdr(add_object, &objects);
  find_lasting(objects);
  keep_lasting(objects);
  std::free(objects.at);
  return 1;
}

const CallerRange* find_lasting_range(std::uintptr_t address) {
  CallerRange* const end = g_table + g_ranges;
  const CallerRange* const next = std::upper_bound(
      g_table, end, address, [](std::uintptr_t a, const CallerRange& range) { return a < range.begin; });
  if (next == g_table || address - next[-1].begin >= next[-1].bytes) return nullptr;
  return next - 1;
}

// ---- Libraries loaded by dlopen ----

// The result of _dl_find_object: the fields that are the same on all machines.
struct Found {
  unsigned long long flags;
  void* begin;
  void* end;
  link_map* map;
  void* more[14];
};

bool ask_linker(std::uintptr_t address, LoadedObject* object) {
  Found found;
  if (g_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
  Span all;
  all.include(reinterpret_cast<std::uintptr_t>(found.begin), reinterpret_cast<std::uintptr_t>(found.end));
  if (object != nullptr) *object = {all.begin, all.end, found.map->l_addr, found.map->l_name};
  return is_inside(all, found.map->l_name);
}

// What this thread's last walk found. It is valid until an object is loaded or unloaded.
struct Walked {
  Span code;
  bool inside;
  unsigned long long adds, subs;
  LoadedObject object;
};
thread_local constinit Walked t_walked __attribute__((tls_model("initial-exec"))) = {};

struct Walk {
  std::uintptr_t address;
  bool inside;
  LoadedObject object;
};

int look_at_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  if (t_walked.code.has(walk.address) && t_walked.adds == info->dlpi_adds && t_walked.subs == info->dlpi_subs) {
    walk.inside = t_walked.inside;
    walk.object = t_walked.object;
    return 1;
  }
  const Spans spans = spans_of(*info);
  if (!spans.code.has(walk.address)) return 0;
  walk.inside = is_inside(spans.all, info->dlpi_name);
  walk.object = {spans.all.begin, spans.all.end, info->dlpi_addr, info->dlpi_name};
  t_walked = {spans.code, walk.inside, info->dlpi_adds, info->dlpi_subs, walk.object};
  return 1;
}

bool walk_objects(std::uintptr_t address, LoadedObject* object) {
  Walk walk = {address, false, {}};
  dl_iterate_phdr(look_at_object, &walk);
  if (object != nullptr) *object = walk.object;
  return walk.inside;
}

}  // namespace

void callers_start(std::uintptr_t host, IsComponent is_component, FindObject find_object) {
  std::free(g_table);
  g_table = nullptr;
  g_ranges = 0;
  g_host = host;
  g_is_component = is_component;
  g_find_object = find_object;
  dl_iterate_phdr(make_table, nullptr);
}

CallerRange caller_range(std::uintptr_t address, LoadedObject* object) {
  if (const CallerRange* const range = find_lasting_range(address)) return *range;
  return {0, 0, g_find_object != nullptr ? ask_linker(address, object) : walk_objects(address, object)};
}

}  // namespace stretto::mpi
