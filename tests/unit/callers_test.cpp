// SPDX-License-Identifier: BSD-3-Clause
// Finds the object whose code lies at an address, by both ways of asking the dynamic linker.
#include "mpi/host/callers.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

namespace stretto::mpi {
namespace {

std::uintptr_t address_of(void* scope, const char* symbol) {
  return reinterpret_cast<std::uintptr_t>(dlsym(scope, symbol));
}

bool is_imagined_component(const char* name) { return std::strncmp(name, "libthread_db.", 13) == 0; }

class Callers : public testing::TestWithParam<bool> {
 protected:
  // The C library takes the place of the MPI.
  void SetUp() override {
    host_ = address_of(RTLD_DEFAULT, "strtol");
    void* const found = GetParam() ? dlsym(RTLD_DEFAULT, "_dl_find_object") : nullptr;
    if (GetParam() && found == nullptr) GTEST_SKIP() << "this C library has no _dl_find_object";
    callers_start(host_, is_imagined_component, reinterpret_cast<FindObject>(found));
  }
  std::uintptr_t host_ = 0;
};

TEST_P(Callers, KnowsWhatStaysLoaded) {
  const CallerRange host = caller_range(host_);
  EXPECT_TRUE(host.inside);
  EXPECT_LT(host_ - host.begin, host.bytes);
  const auto here = reinterpret_cast<std::uintptr_t>(&is_imagined_component);
  const CallerRange program = caller_range(here);
  EXPECT_FALSE(program.inside);
  EXPECT_LT(here - program.begin, program.bytes);
}

TEST_P(Callers, AsksForWhatWasLoadedLater) {
  for (int round = 0; round < 3; round++) {
    void* const library = dlopen("libthread_db.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) GTEST_SKIP() << dlerror();
    const std::uintptr_t address = address_of(library, "td_init");
    ASSERT_NE(address, 0u);
    for (int again = 0; again < 2; again++) {
      const CallerRange range = caller_range(address);
      EXPECT_TRUE(range.inside);
      EXPECT_EQ(range.bytes, 0u) << "it may be unloaded";
    }
    dlclose(library);
    EXPECT_FALSE(caller_range(address).inside) << "nothing lies there any more";
  }
}

TEST_P(Callers, CodeOfNoObjectIsTheProgramsOwn) { EXPECT_FALSE(caller_range(16).inside); }

INSTANTIATE_TEST_SUITE_P(Linker, Callers, testing::Values(true, false));

}  // namespace
}  // namespace stretto::mpi
