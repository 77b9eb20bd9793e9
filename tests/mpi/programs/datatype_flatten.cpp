// SPDX-License-Identifier: BSD-3-Clause
// The flattener and the staging, linked into a program of their own and compared with the host's
// MPI_Pack and MPI_Unpack. It tries predefined types, random nests of every constructor, types of
// too many runs, handles used again, and threads. Prints "flatten ok" with the number of types
// tried.
#include <dlfcn.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/region.hpp"
#include "datatype_builder.hpp"
#include "mpi/data/datatype.hpp"
#include "mpi/data/staging.hpp"
#include "mpi/host/host.hpp"

// In the library discover.cpp does this. Here the host is linked.
namespace stretto::mpi {
constinit Host g_host{};
void* host_symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

void fill_host() {
#define FILL(name) g_host.name = &PMPI_##name;
  STRETTO_HOST_REQUIRED(FILL)
  STRETTO_HOST_OPTIONAL(FILL)
#undef FILL
  g_host.constants.datatype_null = MPI_DATATYPE_NULL;
  g_host.constants.comm_self = MPI_COMM_SELF;
  g_host.constants.errors_return = MPI_ERRORS_RETURN;
}

// Signatures have their own test. The operations' tables stay out of this program.
Signature signature_of(MPI_Datatype, std::size_t) { return {}; }
MPI_Comm trial_comm() { return MPI_COMM_SELF; }
// Nor does this program free communicators.
MPI_Comm communicator_to_pack(MPI_Comm comm, std::uint64_t) { return comm; }

State of_self() {
  State state;
  state.handle = MPI_COMM_SELF;
  return state;
}
}  // namespace stretto::mpi

namespace {

using namespace stretto;
using namespace stretto::mpi;
using ::model::Builder;
using ::model::Random;
using Model = ::model::Type;

std::uint64_t g_seed = 1;
int g_tried = 0;
// Open MPI 5.0.11 and Intel MPI 2021.18 pack some nests with resized types otherwise than the
// standard says, and than other hosts do. So the program reports a few disagreements with the host
// and does not fail.
int g_disagreed = 0;
std::string g_disagreement;

[[noreturn]] void fail(const char* what, const std::string& type, long long detail = 0) {
  std::fprintf(stderr, "FAILED (seed %llu): %s: %s [%lld]\n", static_cast<unsigned long long>(g_seed), what,
               type.c_str(), detail);
  std::abort();
}

// A buffer with canaries around and inside what `count` elements touch.
struct Memory {
  std::vector<char> bytes;
  char* origin;

  Memory(const Model& type, std::int64_t count, std::uint64_t key) {
    const ::model::Reach reach = ::model::reach_of(type, count);
    bytes.resize(static_cast<std::size_t>(reach.high - reach.low) + 128);
    origin = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(bytes.data()) + 64 -
                                     static_cast<std::uintptr_t>(reach.low));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(::model::mix(key + i));
  }
};

std::vector<char> packed_by_model(const Model& type, std::int64_t count, const Memory& memory) {
  std::vector<char> result(type.size * static_cast<std::size_t>(count));
  ::model::for_each_piece(type, count, [&](std::ptrdiff_t offset, std::size_t position, std::size_t bytes) {
    std::memcpy(result.data() + position, memory.origin + offset, bytes);
  });
  return result;
}

std::vector<char> packed_by_host(const Model& type, std::int64_t count, const Memory& memory) {
  int bound = 0;
  MPI_Pack_size(static_cast<int>(count), type.handle, MPI_COMM_SELF, &bound);
  std::vector<char> result(static_cast<std::size_t>(bound) + 64);
  int position = 0;
  MPI_Pack(memory.origin, static_cast<int>(count), type.handle, result.data(), static_cast<int>(result.size()),
           &position, MPI_COMM_SELF);
  result.resize(static_cast<std::size_t>(position));
  return result;
}

void check_runs(const Layout& layout, const Model& type) {
  std::size_t size = 0;
  for (std::size_t r = 0; r < layout.run_count; ++r) {
    if (layout.runs[r].bytes == 0) fail("an empty run", type.text);
    if (r != 0 &&
        layout.runs[r - 1].offset + static_cast<std::ptrdiff_t>(layout.runs[r - 1].bytes) == layout.runs[r].offset) {
      fail("neighbouring runs are not merged", type.text, static_cast<long long>(r));
    }
    size += layout.runs[r].bytes;
  }
  if (size != layout.size) fail("the runs' bytes are not the size", type.text, static_cast<long long>(size));
}

// Packs and unpacks `count` elements through the layout and compares with the model and the host.
void check_type(const Model& type, std::int64_t count, Random& random) {
  ++g_tried;
  const Layout* layout = layout_acquire(type.handle);
  if (!layout) fail("no layout", type.text);
  if (layout->size != type.size) fail("size", type.text, static_cast<long long>(layout->size));
  if (layout->extent != type.extent) fail("extent", type.text, layout->extent);
  check_runs(*layout, type);
  Memory source(type, count, random.next());
  const std::vector<char> expected = packed_by_model(type, count, source);
  if (packed_by_host(type, count, source) != expected) {
    ++g_disagreed;
    if (g_disagreement.empty() || type.text.size() < g_disagreement.size()) g_disagreement = type.text;
  }
  const Region region{source.origin, static_cast<std::uint64_t>(count), layout};
  std::vector<char> seen(expected.size());
  Stream(region).pack(seen.data(), seen.size());
  if (seen != expected) fail("pack", type.text, static_cast<long long>(count));
  if (::model::reach_of(type, count).overlaps) {
    layout_release(layout);
    return;
  }
  Memory target(type, count, 7);
  Memory by_model(type, count, 7);
  Stream(Region{target.origin, static_cast<std::uint64_t>(count), layout}).unpack(expected.data(), expected.size());
  ::model::for_each_piece(type, count, [&](std::ptrdiff_t offset, std::size_t position, std::size_t bytes) {
    std::memcpy(by_model.origin + offset, expected.data() + position, bytes);
  });
  if (target.bytes != by_model.bytes) fail("unpack", type.text, static_cast<long long>(count));
  layout_release(layout);
}

// ---- Predefined ----

// One run of the whole size and extent, unless it is one of the pairs.
void check_named(MPI_Datatype type, const char* name, const std::vector<::model::Piece>& pieces = {}) {
  if (type == MPI_DATATYPE_NULL) return;  // this host has no such type
  int size = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lower, &extent);
  Model plain;
  plain.handle = type;
  plain.text = name;
  plain.extent = extent;
  plain.size = static_cast<std::size_t>(size);
  plain.pieces = pieces;
  if (pieces.empty() && size != 0) plain.pieces = {{0, static_cast<std::size_t>(size)}};
  Random random(g_seed, 5);
  check_type(plain, 3, random);
  if (layout_acquire(type) != layout_acquire(type)) fail("a predefined type has two layouts", name);
}

#define NAMED(type) check_named(type, #type)

void check_predefined() {
  NAMED(MPI_CHAR);
  NAMED(MPI_SIGNED_CHAR);
  NAMED(MPI_UNSIGNED_CHAR);
  NAMED(MPI_BYTE);
  NAMED(MPI_WCHAR);
  NAMED(MPI_SHORT);
  NAMED(MPI_UNSIGNED_SHORT);
  NAMED(MPI_INT);
  NAMED(MPI_UNSIGNED);
  NAMED(MPI_LONG);
  NAMED(MPI_UNSIGNED_LONG);
  NAMED(MPI_LONG_LONG);
  NAMED(MPI_UNSIGNED_LONG_LONG);
  NAMED(MPI_FLOAT);
  NAMED(MPI_DOUBLE);
  NAMED(MPI_LONG_DOUBLE);
  NAMED(MPI_PACKED);
  NAMED(MPI_C_BOOL);
  NAMED(MPI_C_FLOAT_COMPLEX);
  NAMED(MPI_C_DOUBLE_COMPLEX);
  NAMED(MPI_C_LONG_DOUBLE_COMPLEX);
  NAMED(MPI_AINT);
  NAMED(MPI_OFFSET);
  NAMED(MPI_COUNT);
  NAMED(MPI_INT8_T);
  NAMED(MPI_INT16_T);
  NAMED(MPI_INT32_T);
  NAMED(MPI_INT64_T);
  NAMED(MPI_UINT8_T);
  NAMED(MPI_UINT16_T);
  NAMED(MPI_UINT32_T);
  NAMED(MPI_UINT64_T);
  NAMED(MPI_CHARACTER);
  NAMED(MPI_LOGICAL);
  NAMED(MPI_INTEGER);
  NAMED(MPI_REAL);
  NAMED(MPI_DOUBLE_PRECISION);
  NAMED(MPI_COMPLEX);
  NAMED(MPI_DOUBLE_COMPLEX);
  NAMED(MPI_INTEGER1);
  NAMED(MPI_INTEGER2);
  NAMED(MPI_INTEGER4);
  NAMED(MPI_INTEGER8);
  NAMED(MPI_REAL4);
  NAMED(MPI_REAL8);
  NAMED(MPI_COMPLEX8);
  NAMED(MPI_COMPLEX16);
  NAMED(MPI_2INTEGER);
  NAMED(MPI_2REAL);
  NAMED(MPI_2DOUBLE_PRECISION);
#ifndef I_MPI_VERSION
  NAMED(MPI_CXX_BOOL);
  NAMED(MPI_CXX_FLOAT_COMPLEX);
  NAMED(MPI_CXX_DOUBLE_COMPLEX);
#endif
  check_named(MPI_FLOAT_INT, "FLOAT_INT", ::model::pair_unit<float>(MPI_FLOAT_INT, "").pieces);
  check_named(MPI_DOUBLE_INT, "DOUBLE_INT", ::model::pair_unit<double>(MPI_DOUBLE_INT, "").pieces);
  check_named(MPI_LONG_INT, "LONG_INT", ::model::pair_unit<long>(MPI_LONG_INT, "").pieces);
  check_named(MPI_SHORT_INT, "SHORT_INT", ::model::pair_unit<short>(MPI_SHORT_INT, "").pieces);
  check_named(MPI_2INT, "2INT", ::model::pair_unit<int>(MPI_2INT, "").pieces);
  check_named(MPI_LONG_DOUBLE_INT, "LONG_DOUBLE_INT", ::model::pair_unit<long double>(MPI_LONG_DOUBLE_INT, "").pieces);
  if (layout_acquire(MPI_DATATYPE_NULL)) fail("a layout for MPI_DATATYPE_NULL", "");
}

// The parametrised types of Fortran have no name, but no program frees them.
void check_fortran() {
  MPI_Datatype types[3];
  MPI_Type_create_f90_real(12, 30, &types[0]);
  MPI_Type_create_f90_complex(6, 30, &types[1]);
  MPI_Type_create_f90_integer(9, &types[2]);
  const std::size_t sizes[] = {8, 8, 4};
  for (int i = 0; i < 3; ++i) {
    const Layout* layout = layout_acquire(types[i]);
    if (!layout || layout->size != sizes[i] || !layout->contiguous) fail("a type of Fortran kinds", std::to_string(i));
    layout_release(layout);
    MPI_Datatype nested;
    MPI_Type_vector(3, 1, 2, types[i], &nested);
    MPI_Type_commit(&nested);
    layout = layout_acquire(nested);
    if (!layout || layout->run_count != 3) fail("a vector of Fortran kinds", std::to_string(i));
    layout_release(layout);
    MPI_Type_free(&nested);
  }
}

// ---- Random ----

void check_random(int cases) {
  const std::vector<::model::Unit> units = ::model::all_units();
  for (int i = 0; i < cases; ++i) {
    Random random(g_seed, i);
    const ::model::Unit& unit = units[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(units.size())))];
    const std::int64_t choices[] = {0, 1, 2, 3, 4, 6, 8, 12, 24, 60};
    Model type = Builder(random, unit).make(choices[random.below(10)], static_cast<int>(random.below(5)));
    check_type(type, random.below(4), random);
    check_type(type, 1 + random.below(3), random);
    ::model::free_type(type);
  }
}

// Shapes as large as users have. They must collapse into few runs without being written out.
void check_merging() {
  const struct {
    int rows, columns, width;
  } shapes[] = {{1 << 15, 1 << 15, 1 << 15}, {4, 1 << 28, 1 << 28}};
  for (const auto& s : shapes) {
    const int sizes[] = {s.rows, s.columns};
    const int subsizes[] = {s.rows, s.width};
    const int starts[] = {0, 0};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    const Layout* layout = layout_acquire(type);
    if (!layout || !layout->contiguous ||
        layout->size != static_cast<std::size_t>(s.rows) * static_cast<std::size_t>(s.width)) {
      fail("a whole array is not one run", std::to_string(s.columns));
    }
    layout_release(layout);
    MPI_Type_free(&type);
  }
}

// ---- Staging ----

void check_opaque() {
  const int count = static_cast<int>(kRunLimit) + 5;
  MPI_Datatype type;
  MPI_Type_vector(count, 1, 2, MPI_SHORT, &type);
  MPI_Type_commit(&type);
  const Layout* layout = layout_acquire(type);
  if (!layout || !layout_is_opaque(*layout)) fail("too many runs, but not opaque", "vector");
  std::vector<short> memory(static_cast<std::size_t>(count) * 4, 42);
  for (std::size_t i = 0; i < memory.size(); i += 2) memory[i] = static_cast<short>(::model::mix(i));
  const std::vector<short> before = memory;
  if (!must_stage(*layout, memory.data())) fail("opaque, but not staged", "vector");
  Staged staged;
  Region region{reinterpret_cast<char*>(memory.data()), 2, layout};
  if (stage(staged, region, type, of_self(), Staged::write) != MPI_SUCCESS) fail("stage", "vector");
  const auto* packed = reinterpret_cast<const short*>(region.flat());
  if (!packed || region.bytes() != static_cast<std::uint64_t>(count) * 4)
    fail("the staged region is not flat", "vector");
  for (int i = 0; i < count; ++i) {
    if (packed[i] != before[static_cast<std::size_t>(i) * 2]) fail("a staged element", "vector", i);
  }
  const short news[] = {11, 22, 33};
  Stream(region).unpack(news, sizeof news);
  if (unstage(staged) != MPI_SUCCESS) fail("unstage", "vector");
  if (memory[0] != 11 || memory[2] != 22 || memory[4] != 33) fail("what was written", "vector");
  for (std::size_t i = 6; i < memory.size(); ++i) {
    if (memory[i] != before[i]) fail("staging touched what was not written", "vector", static_cast<long long>(i));
  }
  layout_release(layout);
  MPI_Type_free(&type);
}

// Blocks of a v-collective through staging: packed back to back, written back to their
// displacements.
void check_staged_blocks() {
  MPI_Datatype type;
  MPI_Type_vector(2, 1, 3, MPI_INT, &type);
  MPI_Type_commit(&type);
  const Layout* layout = layout_acquire(type);
  const int counts[] = {2, 0, 1};
  const int displs[] = {3, 0, 1};
  std::vector<int> memory(32);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i);
  std::vector<int> expected = memory;
  Blocks blocks{reinterpret_cast<char*>(memory.data()), layout, 0, counts, displs, false};
  const Blocks before = blocks;
  Staged staged;
  if (stage(staged, blocks, 3, type, of_self(), Staged::write) != MPI_SUCCESS) fail("stage blocks", "vector");
  for (int r = 0; r < 3; ++r) {
    if (blocks.at(r).count != static_cast<std::uint64_t>(counts[r])) fail("a staged block's count", "vector", r);
    Stream user(before.at(r));
    Stream packed(blocks.at(r));
    char a[16];
    char b[16];
    for (; user.left();) {
      user.pack(a, 8);
      packed.pack(b, 8);
      if (std::memcmp(a, b, 8) != 0) fail("a staged block's bytes", "vector", r);
    }
  }
  const int news[] = {-1, -2};
  Stream(blocks.at(2)).unpack(news, 8);
  if (unstage(staged) != MPI_SUCCESS) fail("unstage blocks", "vector");
  expected[4] = -1;  // block 2 starts one extent (4 ints) in; its element takes ints 0 and 3
  expected[7] = -2;
  if (memory != expected) fail("what was written to a block", "vector");
  layout_release(layout);
  MPI_Type_free(&type);
}

// ---- Life and death ----

void check_known(MPI_Datatype type, std::size_t blocks) {
  for (int k = 0; k < 2; ++k) {
    const Layout* layout = layout_acquire(type);
    if (!layout || layout->run_count != blocks) fail("a freed type's layout lives on", "vector");
    layout_release(layout);
  }
}

// Bytes of heap that `cycles` types cost, if we use them or only make and free them.
long long growth_of(int cycles, bool used) {
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < cycles; ++i) {
    MPI_Datatype type;
    const int blocks = 2 + i % 7;
    MPI_Type_vector(blocks, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (used) check_known(type, static_cast<std::size_t>(blocks));
    MPI_Type_free(&type);
  }
  return static_cast<long long>(mallinfo2().uordblks) - static_cast<long long>(before);
}

// Freed handles come back with other shapes, and a thread's memory of them must not. The heap must
// not grow by more than it does for the host alone (MPICH 4.0.2 keeps 64 bytes of each type in some
// runs).
void check_reuse(int cycles) {
  growth_of(cycles / 4, true);  // what is allocated once and kept
  const long long alone = growth_of(cycles, false);
  const long long growth = growth_of(cycles, true);
  if (growth > std::max(alone, 0ll) + 16 * 1024) fail("memory grows with every type", std::to_string(alone), growth);
}

// After the first few, a type that is made for one call gets no attribute. A type that stays gets
// its own after a few calls.
long g_attributes = 0;
int count_attribute(MPI_Datatype type, int keyval, void* value) {
  ++g_attributes;
  return PMPI_Type_set_attr(type, keyval, value);
}

void check_attributes() {
  g_host.Type_set_attr = count_attribute;
  const auto made_for_one_call = [](int n) {
    MPI_Datatype type;
    MPI_Type_vector(2 + n % 7, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    const Layout* layout = layout_acquire(type);
    if (!layout || layout->run_count != static_cast<std::size_t>(2 + n % 7))
      fail("a type made for one call", "vector", n);
    layout_release(layout);
    return type;
  };
  for (int n = 0; n < 4000; ++n) {
    MPI_Datatype type = made_for_one_call(n);
    MPI_Type_free(&type);
  }
  if (g_attributes > 400) fail("attributes for types of one call", "vector", g_attributes);
  MPI_Datatype lasting = made_for_one_call(3);
  const Layout* first = nullptr;
  for (int n = 0; n < 100; ++n) {
    const Layout* layout = layout_acquire(lasting);
    if (n == 70) first = layout;
    if (n > 70 && layout != first) fail("a lasting type is walked each time", "vector", n);
    layout_release(layout);
  }
  MPI_Type_free(&lasting);
  g_host.Type_set_attr = &PMPI_Type_set_attr;
}

// A call in progress keeps its layout although the type is freed. A duplicate has a layout of its
// own.
void check_release_after_free() {
  MPI_Datatype type;
  MPI_Datatype copy;
  MPI_Type_vector(5, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  const Layout* layout = layout_acquire(type);
  MPI_Type_dup(type, &copy);
  const Layout* other = layout_acquire(copy);
  if (!other || other == layout) fail("a duplicate shares the layout", "dup");
  MPI_Type_free(&type);
  if (layout->run_count != 5 || layout->runs[4].offset != 32) fail("the layout went with the type", "vector");
  layout_release(layout);
  if (other->run_count != 5) fail("the duplicate's layout went with the original", "dup");
  layout_release(other);
  MPI_Type_free(&copy);
}

void check_threads() {
  MPI_Datatype shared;
  MPI_Type_vector(9, 2, 5, MPI_DOUBLE, &shared);
  MPI_Type_commit(&shared);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([shared, t] {
      for (int i = 0; i < 2000; ++i) {
        const Layout* layout = layout_acquire(shared);
        if (!layout || layout->run_count != 9) fail("a shared layout", "vector", t);
        MPI_Datatype own;
        MPI_Type_vector(2 + (i + t) % 5, 1, 2, MPI_INT, &own);
        MPI_Type_commit(&own);
        const Layout* mine = layout_acquire(own);
        if (!mine || mine->run_count != static_cast<std::size_t>(2 + (i + t) % 5))
          fail("a thread's layout", "vector", t);
        layout_release(mine);
        MPI_Type_free(&own);
        layout_release(layout);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MPI_Type_free(&shared);
}

// ---- Device memory ----

// `library` claims a range of memory for a device (datatype_device.c). The program loads it while
// it runs, as with CUDA.
void check_device(const char* library) {
  static char device[1 << 12];
  static char plain[1 << 12];
  const Layout* layout = layout_acquire(MPI_BYTE);
  if (must_stage(*layout, device)) fail("device memory without a driver", library);
  void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!driver) fail("dlopen", dlerror());
  const auto claim = reinterpret_cast<void (*)(const void*, std::size_t)>(dlsym(driver, "claim_device_memory"));
  std::vector<char> fresh(8 << 20);  // not asked about yet
  char* claimed = fresh.data() + (4 << 20);
  claim(claimed, 64);
  if (!must_stage(*layout, claimed)) fail("device memory is not staged", library);
  if (must_stage(*layout, plain)) fail("host memory is staged", library);
  if (must_stage(*layout, fresh.data())) fail("host memory beside it is staged", library);
}

}  // namespace

int main(int argc, char** argv) {
  int cases = 3000;
  const char* driver = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--cases")) cases = std::atoi(argv[++i]);
    if (!std::strcmp(argv[i], "--seed")) g_seed = std::strtoull(argv[++i], nullptr, 10);
    if (!std::strcmp(argv[i], "--driver")) driver = argv[++i];
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  fill_host();
  datatypes_start(false);
  check_predefined();
  check_fortran();
  check_random(cases);
  check_merging();
  check_opaque();
  check_staged_blocks();
  check_reuse(20000);
  check_attributes();
  check_release_after_free();
  if (driver) check_device(driver);
  datatypes_stop();
  if (provided == MPI_THREAD_MULTIPLE) {
    datatypes_start(true);
    check_threads();
    check_random(50);
    datatypes_stop();
  }
  MPI_Finalize();
  if (g_disagreed * 50 > g_tried) fail("the host disagrees with the model too often", g_disagreement, g_disagreed);
  std::printf("flatten ok: %d types, the host packs %d differently\n", g_tried, g_disagreed);
  if (g_disagreed) std::printf("shortest: %s\n", g_disagreement.c_str());
}
