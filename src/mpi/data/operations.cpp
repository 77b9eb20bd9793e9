// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/operations.hpp"

#include <pthread.h>

#include <atomic>
#include <cstring>

#include "mpi/data/operations_host.hpp"
#include "mpi/host/host.hpp"
#include "mpi/vendor/vendor.hpp"
#include "shm/journal.hpp"

namespace stretto::mpi {

thread_local constinit RecentOperation t_operation STRETTO_TLS = {};
namespace {

using reduce::Op;
using reduce::Type;

constexpr Type integer(std::size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1: return is_signed ? Type::i8 : Type::u8;
    case 2: return is_signed ? Type::i16 : Type::u16;
    case 4: return is_signed ? Type::i32 : Type::u32;
    default: return is_signed ? Type::i64 : Type::u64;
  }
}
template <class T>
constexpr Type integer_like = integer(sizeof(T), static_cast<T>(-1) < 0);

// clang-format off
// Columns: MPI's name, Open MPI's symbol, the type of the kernels, and whether MPI allows
// logical operations on it. Types with count_ have no kernels: MPI allows them in no reduction,
// or few hosts have them.
#define STRETTO_TYPES(X)                                                                     \
  X(MPI_SIGNED_CHAR,          ompi_mpi_signed_char,           integer_like<signed char>,        true)  \
  X(MPI_UNSIGNED_CHAR,        ompi_mpi_unsigned_char,         integer_like<unsigned char>,      true)  \
  X(MPI_SHORT,                ompi_mpi_short,                 integer_like<short>,              true)  \
  X(MPI_UNSIGNED_SHORT,       ompi_mpi_unsigned_short,        integer_like<unsigned short>,     true)  \
  X(MPI_INT,                  ompi_mpi_int,                   integer_like<int>,                true)  \
  X(MPI_UNSIGNED,             ompi_mpi_unsigned,              integer_like<unsigned>,           true)  \
  X(MPI_LONG,                 ompi_mpi_long,                  integer_like<long>,               true)  \
  X(MPI_UNSIGNED_LONG,        ompi_mpi_unsigned_long,         integer_like<unsigned long>,      true)  \
  X(MPI_LONG_LONG_INT,        ompi_mpi_long_long_int,         integer_like<long long>,          true)  \
  X(MPI_UNSIGNED_LONG_LONG,   ompi_mpi_unsigned_long_long,    integer_like<unsigned long long>, true)  \
  X(MPI_INT8_T,               ompi_mpi_int8_t,                Type::i8,                         true)  \
  X(MPI_INT16_T,              ompi_mpi_int16_t,               Type::i16,                        true)  \
  X(MPI_INT32_T,              ompi_mpi_int32_t,               Type::i32,                        true)  \
  X(MPI_INT64_T,              ompi_mpi_int64_t,               Type::i64,                        true)  \
  X(MPI_UINT8_T,              ompi_mpi_uint8_t,               Type::u8,                         true)  \
  X(MPI_UINT16_T,             ompi_mpi_uint16_t,              Type::u16,                        true)  \
  X(MPI_UINT32_T,             ompi_mpi_uint32_t,              Type::u32,                        true)  \
  X(MPI_UINT64_T,             ompi_mpi_uint64_t,              Type::u64,                        true)  \
  X(MPI_AINT,                 ompi_mpi_aint,                  integer(sizeof(MPI_Aint), true),  false) \
  X(MPI_COUNT,                ompi_mpi_count,                 integer(sizeof(MPI_Count), true), false) \
  X(MPI_OFFSET,               ompi_mpi_offset,                integer(sizeof(MPI_Offset), true), false) \
  X(MPI_FLOAT,                ompi_mpi_float,                 Type::f32,                        false) \
  X(MPI_DOUBLE,               ompi_mpi_double,                Type::f64,                        false) \
  X(MPI_LONG_DOUBLE,          ompi_mpi_long_double,           Type::f80,                        false) \
  X(MPI_C_FLOAT_COMPLEX,      ompi_mpi_c_float_complex,       Type::c32,                        false) \
  X(MPI_C_DOUBLE_COMPLEX,     ompi_mpi_c_double_complex,      Type::c64,                        false) \
  X(MPI_C_LONG_DOUBLE_COMPLEX, ompi_mpi_c_long_double_complex, Type::c80,                       false) \
  X(MPI_CXX_FLOAT_COMPLEX,    ompi_mpi_cxx_cplex,             Type::c32,                        false) \
  X(MPI_CXX_DOUBLE_COMPLEX,   ompi_mpi_cxx_dblcplex,          Type::c64,                        false) \
  X(MPI_CXX_LONG_DOUBLE_COMPLEX, ompi_mpi_cxx_ldblcplex,      Type::c80,                        false) \
  X(MPI_C_BOOL,               ompi_mpi_c_bool,                Type::boolean8,                   true)  \
  X(MPI_CXX_BOOL,             ompi_mpi_cxx_bool,              Type::boolean8,                   true)  \
  X(MPI_BYTE,                 ompi_mpi_byte,                  Type::byte8,                      false) \
  X(MPI_FLOAT_INT,            ompi_mpi_float_int,             Type::f32_i32,                    false) \
  X(MPI_DOUBLE_INT,           ompi_mpi_double_int,            Type::f64_i32,                    false) \
  X(MPI_LONG_INT,             ompi_mpi_long_int,              Type::i64_i32,                    false) \
  X(MPI_2INT,                 ompi_mpi_2int,                  Type::i32_i32,                    false) \
  X(MPI_SHORT_INT,            ompi_mpi_short_int,             Type::i16_i32,                    false) \
  X(MPI_LONG_DOUBLE_INT,      ompi_mpi_longdbl_int,           Type::f80_i32,                    false) \
  X(MPI_INTEGER,              ompi_mpi_integer,               Type::i32,                        false) \
  X(MPI_INTEGER1,             ompi_mpi_integer1,              Type::i8,                         false) \
  X(MPI_INTEGER2,             ompi_mpi_integer2,              Type::i16,                        false) \
  X(MPI_INTEGER4,             ompi_mpi_integer4,              Type::i32,                        false) \
  X(MPI_INTEGER8,             ompi_mpi_integer8,              Type::i64,                        false) \
  X(MPI_REAL,                 ompi_mpi_real,                  Type::f32,                        false) \
  X(MPI_REAL4,                ompi_mpi_real4,                 Type::f32,                        false) \
  X(MPI_REAL8,                ompi_mpi_real8,                 Type::f64,                        false) \
  X(MPI_DOUBLE_PRECISION,     ompi_mpi_dblprec,               Type::f64,                        false) \
  X(MPI_COMPLEX,              ompi_mpi_cplex,                 Type::c32,                        false) \
  X(MPI_COMPLEX8,             ompi_mpi_complex8,              Type::c32,                        false) \
  X(MPI_COMPLEX16,            ompi_mpi_complex16,             Type::c64,                        false) \
  X(MPI_DOUBLE_COMPLEX,       ompi_mpi_dblcplex,              Type::c64,                        false) \
  X(MPI_LOGICAL,              ompi_mpi_logical,               Type::logical4,                   true)  \
  X(MPI_2REAL,                ompi_mpi_2real,                 Type::f32_f32,                    false) \
  X(MPI_2DOUBLE_PRECISION,    ompi_mpi_2dblprec,              Type::f64_f64,                    false) \
  X(MPI_2INTEGER,             ompi_mpi_2integer,              Type::i32_i32,                    false) \
  X(MPI_CHAR,                 ompi_mpi_char,                  Type::count_,                     false) \
  X(MPI_CHARACTER,            ompi_mpi_character,             Type::count_,                     false) \
  X(MPI_WCHAR,                ompi_mpi_wchar,                 Type::count_,                     false) \
  X(MPI_PACKED,               ompi_mpi_packed,                Type::count_,                     false) \
  X(MPI_REAL16,               ompi_mpi_real16,                Type::count_,                     false) \
  X(MPI_COMPLEX32,            ompi_mpi_complex32,             Type::count_,                     false) \
  STRETTO_TYPES_OF_ABI(X)

#define STRETTO_OPS(X)                                                                    \
  X(MPI_MAX, max) X(MPI_MIN, min) X(MPI_SUM, sum) X(MPI_PROD, prod) X(MPI_LAND, land)     \
  X(MPI_BAND, band) X(MPI_LOR, lor) X(MPI_BOR, bor) X(MPI_LXOR, lxor) X(MPI_BXOR, bxor)   \
  X(MPI_MINLOC, minloc) X(MPI_MAXLOC, maxloc)
// clang-format on

// A hash table of handles with open addressing. It is filled once, under the lock.
// Later it is only read.
template <class Key, class Value, std::size_t kSlots>
class Table {
 public:
  void add(Key key, const Value& value) {
    for (std::size_t i = vendor::predefined_hash(key);; ++i) {
      Slot& slot = slots_[i % kSlots];
      if (slot.used && slot.key != key) continue;
      if (!slot.used) slot = {key, true, value};  // if a type has two names, the first one counts
      return;
    }
  }
  [[nodiscard]] const Value* find(Key key) const {
    for (std::size_t i = vendor::predefined_hash(key);; ++i) {
      const Slot& slot = slots_[i % kSlots];
      if (!slot.used) return nullptr;
      if (slot.key == key) return &slot.value;
    }
  }

 private:
  struct Slot {
    Key key;
    bool used;
    Value value;
  };
  Slot slots_[kSlots];
};

Signature elements_of(Type type) {
  Signature s;
  const auto integers = [&s](unsigned bytes) {
    s.append(element_code(bytes == 1 ? ElementKind::bytes : ElementKind::integer, bytes), 1);
  };
  const auto reals = [&s](std::size_t bytes, std::uint64_t count) {
    s.append(element_code(ElementKind::real, static_cast<unsigned>(bytes)), count);
  };
  switch (type) {
    case Type::f32: reals(sizeof(float), 1); break;
    case Type::f64: reals(sizeof(double), 1); break;
    case Type::f80: reals(sizeof(long double), 1); break;
    case Type::c32:
    case Type::f32_f32: reals(sizeof(float), 2); break;
    case Type::c64:
    case Type::f64_f64: reals(sizeof(double), 2); break;
    case Type::c80: reals(sizeof(long double), 2); break;
    case Type::f32_i32:
      reals(sizeof(float), 1);
      integers(4);
      break;
    case Type::f64_i32:
      reals(sizeof(double), 1);
      integers(4);
      break;
    case Type::f80_i32:
      reals(sizeof(long double), 1);
      integers(4);
      break;
    case Type::i64_i32:
      integers(8);
      integers(4);
      break;
    case Type::i32_i32:
      integers(4);
      integers(4);
      break;
    case Type::i16_i32:
      integers(2);
      integers(4);
      break;
    default: integers(static_cast<unsigned>(reduce::type_bytes(type))); break;
  }
  return s;
}

enum class Standing : std::uint8_t { none, kernels, others };  // others: predefined, but only for one-sided calls
struct KnownOp {
  Standing standing;
  Op op;
};

constinit Table<MPI_Datatype, KnownType, 256> g_types = {};
constinit Table<MPI_Op, KnownOp, 64> g_ops = {};
constinit std::atomic<bool> g_ready{false};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

Signature elements_of_unknown(std::size_t bytes) {
  Signature s;
  s.append(element_code(bytes == 1 ? ElementKind::bytes : ElementKind::unknown, static_cast<unsigned>(bytes)), 1);
  return s;
}

#define STRETTO_ROW(...) +1
static_assert(0 STRETTO_TYPES(STRETTO_ROW) <= kMostTypes);
#undef STRETTO_ROW

// ---- The tables ----

// Adds a type if the host's layout of it is that of our kernels. Some hosts lack some types, and
// compiler options change the Fortran types.
void add_type(MPI_Datatype type, Type kind, bool logical, std::uint8_t row) {
  if (type == MPI_Datatype{} || type == host().constants.datatype_null || !vendor::has_type(type)) return;
  MPI_Count size = 0, lower = 0, extent = 0;
  if (host().Type_size_x(type, &size) != MPI_SUCCESS) return;
  if (host().Type_get_extent_x(type, &lower, &extent) != MPI_SUCCESS) return;
  if (size <= 0 || lower != 0 || extent < size) return;
  const auto bytes = static_cast<std::size_t>(extent);
  if (kind != Type::count_ && bytes != reduce::type_bytes(kind)) return;
  const Signature elements = kind != Type::count_ ? elements_of(kind) : elements_of_unknown(bytes);
  g_types.add(type, {kind, size != extent, logical, row, elements.element(), bytes});
}

void add_op(MPI_Op op, Standing standing, Op kind) {
  if (op != MPI_Op{}) g_ops.add(op, {standing, kind});
}

[[gnu::cold, gnu::noinline]] void fill() {
  pthread_mutex_lock(&g_lock);
  if (!g_ready.load(std::memory_order_relaxed)) {
    const Inside inside;
    add_op(STRETTO_HANDLE(MPI_Op, MPI_OP_NULL, ompi_mpi_op_null), Standing::none, Op{});
    add_op(STRETTO_HANDLE(MPI_Op, MPI_REPLACE, ompi_mpi_op_replace), Standing::others, Op{});
    add_op(STRETTO_HANDLE(MPI_Op, MPI_NO_OP, ompi_mpi_op_no_op), Standing::others, Op{});
#define STRETTO_ADD(mpi_name, name) \
  add_op(STRETTO_HANDLE(MPI_Op, mpi_name, ompi_mpi_op_##name), Standing::kernels, Op::name);
    STRETTO_OPS(STRETTO_ADD)
#undef STRETTO_ADD
    std::uint8_t row = 0;
#define STRETTO_ADD(mpi_name, symbol, kind, logical) \
  add_type(STRETTO_HANDLE(MPI_Datatype, mpi_name, symbol), kind, logical, row++);
    STRETTO_TYPES(STRETTO_ADD)
#undef STRETTO_ADD
    g_ready.store(true, std::memory_order_release);  // pairs with combining_of
  }
  pthread_mutex_unlock(&g_lock);
}

// Who combines for a handle that is not in the table of operations.
Combining::By unknown_op(MPI_Op op) {
  if (!vendor::is_operation(op)) return Combining::By::nobody;
  return vendor::is_hosts_operation(op) ? Combining::By::host : Combining::By::user;
}

}  // namespace

Signature signature_of(MPI_Datatype type, std::size_t bytes) {
  if (!g_ready.load(std::memory_order_acquire)) fill();
  const KnownType* const known = g_types.find(type);
  return known != nullptr && known->type != Type::count_ ? elements_of(known->type) : elements_of_unknown(bytes);
}

namespace {

// Whether MPI allows the operation on the type. Then every host has it.
bool is_defined(Op op, const KnownType& known) {
  if (known.type == Type::count_ || (is_logical(op) && !known.logical)) return false;
  return reduce::kernel(op, known.type) != nullptr;
}

void use_kernels(Combining& combining, Op op, Type type, bool padded) {
  combining.type = type;
  combining.two = reduce::kernel(op, type);
  combining.three = reduce::kernel3(op, type);
  combining.rounds = is_arithmetic(op) && is_floating(type);
  combining.by = padded ? Combining::By::padded : Combining::By::kernel;
}

}  // namespace

Combining look_up(MPI_Op op, MPI_Datatype type) {
  if (!g_ready.load(std::memory_order_acquire)) [[unlikely]]
    fill();
  const KnownOp* const known_op = g_ops.find(op);
  const KnownType* const known_type = g_types.find(type);
  Combining combining;
  if (known_type != nullptr) {
    combining.type = known_type->type;
    combining.element_bytes = known_type->bytes;
    combining.element = known_type->element;
  }
  if (known_op == nullptr) {
    combining.by = unknown_op(op);
    combining.rounds = true;
    combining.code = shm::CallDescriptor::kUserOp;
    return combining;
  }
  if (known_op->standing == Standing::none) return combining;
  combining.by = Combining::By::host;
  if (known_op->standing == Standing::others || known_type == nullptr) return combining;
  const Op kind = known_op->op;
  combining.op = kind;
  combining.code = static_cast<std::uint8_t>(1 + static_cast<unsigned>(kind));
  if (is_defined(kind, *known_type)) {
    use_kernels(combining, kind, known_type->type, known_type->padded);
  } else {
    const Answer answer = host_answer(op, kind, type, *known_type);
    if (answer == Answer::unknown) return combining;
    if (answer >= Answer::first_kernel) {
      use_kernels(combining, kind,
                  static_cast<Type>(static_cast<unsigned>(answer) - static_cast<unsigned>(Answer::first_kernel)),
                  false);
    } else if (answer == Answer::function) {
      combining.by = Combining::By::function;
      combining.rounds = is_arithmetic(kind);
    }
  }
  t_operation = {op, type, combining};
  return combining;
}

}  // namespace stretto::mpi
