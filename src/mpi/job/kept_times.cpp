// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/kept_times.hpp"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/user_path.hpp"
#include "mpi/host/host.hpp"
#include "mpi/job/job.hpp"
#include "sys/hash.hpp"
#include "sys/sys.hpp"

extern char** environ;

namespace stretto::mpi {
namespace {

using ull = unsigned long long;
constexpr std::int64_t kHoldsSeconds = 24 * 60 * 60;

// By which networks an MPI goes: variables of users, not those that launchers set for each job.
std::uint64_t networks() {
  constexpr const char* kPrefixes[] = {"UCX_",         "FI_",          "MPIR_CVAR_",   "I_MPI_FABRICS",
                                       "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl", "I_MPI_OFI"};
  std::uint64_t all = 0;
  for (const char* const* variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    for (const char* const prefix : kPrefixes) {
      if (std::strncmp(*variable, prefix, std::strlen(prefix)) == 0)
        all += sys::hash(*variable, std::strlen(*variable));
    }
  }
  return all;
}

// What a file is about: its first line.
struct Key {
  char text[900];
  char path[kOptionPathBytes];  // "": there is no place
  Key(const char* what, int one, int other) {
    char version[200], name[64];
    host_version(version, sizeof version);
    const char *a = job()->hosts.of(one), *b = job()->hosts.of(other);
    if (std::strcmp(a, b) > 0) std::swap(a, b);
    std::snprintf(text, sizeof text, "%s %.250s %.250s %s, Stretto %s, %016llx\n", what, a, b, version, STRETTO_VERSION,
                  ull{networks()});
    std::snprintf(name, sizeof name, "stretto/times-%016llx", ull{sys::hash(text, std::strlen(text))});
    (void)user_path(path, "XDG_CACHE_HOME", "/.cache", name);
  }
};

}  // namespace

bool kept_times_read(const char* what, int one, int other, KeptTimes* times) {
  const Key key(what, one, other);
  const std::size_t head = std::strlen(key.text);
  char text[sizeof key.text + 100];
  std::size_t bytes = 0;
  if (key.path[0] == 0 || sys::file_read(key.path, text, sizeof text - 1, &bytes) != 0) return false;
  text[bytes] = 0;
  ull seconds = 0, ours_ns = 0, host_ns = 0;
  if (bytes < head || std::memcmp(text, key.text, head) != 0 ||
      std::sscanf(text + head, "%llu %llu %llu", &seconds, &ours_ns, &host_ns) != 3)
    return false;
  const std::int64_t age = static_cast<std::int64_t>(std::time(nullptr)) - static_cast<std::int64_t>(seconds);
  if (age < 0 || age > kHoldsSeconds || ours_ns == 0 || host_ns == 0) return false;
  *times = {ours_ns, host_ns};
  return true;
}

void kept_times_write(const char* what, int one, int other, const KeptTimes& times) {
  const Key key(what, one, other);
  if (key.path[0] == 0) return;
  char text[sizeof key.text + 100];
  const int length = std::snprintf(text, sizeof text, "%s%llu %llu %llu\n", key.text,
                                   static_cast<ull>(std::time(nullptr)), ull{times.ours_ns}, ull{times.host_ns});
  (void)sys::file_replace(key.path, text, static_cast<std::size_t>(length));
}

}  // namespace stretto::mpi
