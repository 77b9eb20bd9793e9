# SPDX-License-Identifier: BSD-3-Clause
# Compiler flags, once. The core is C++20 without exceptions, RTTI or static destructors: it lives in other people's
# processes.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_package(Threads REQUIRED)

set(STRETTO_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-invalid-offsetof)

# Structures are copied by words. A load that is wider than the stores before it waits until they have reached the cache, behind all
# earlier ones, the flag just published among them: 5 to 10 ns of a short call.
include(CheckCXXCompilerFlag)
set(STRETTO_BY_WORDS -fno-tree-slp-vectorize)
check_cxx_compiler_flag(-mtune-ctrl=^sse_unaligned_load_optimal STRETTO_HAVE_TUNE_CTRL)
# By itself, GCC lets a library grow by 40%, and then inlines no more: 100 to 200 instructions of a short call.
check_cxx_compiler_flag(--param=inline-unit-growth=100 STRETTO_HAVE_UNIT_GROWTH)
if(STRETTO_HAVE_UNIT_GROWTH)
  set(STRETTO_INLINED --param=inline-unit-growth=100)
endif()
if(STRETTO_HAVE_TUNE_CTRL)
  list(APPEND STRETTO_BY_WORDS -mtune-ctrl=^sse_unaligned_load_optimal)
endif()

if(STRETTO_SANITIZE)
  string(REPLACE ";" "," _sanitize "${STRETTO_SANITIZE}")
  # The address sanitizer finds accesses through null and past an object by itself. Checks of them take a fifth of a build.
  add_compile_options(-fsanitize=${_sanitize} -fno-sanitize=null,object-size -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${_sanitize})
endif()

function(stretto_core_flags target)
  target_compile_options(${target} PRIVATE ${STRETTO_WARNINGS}
    -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden -fno-threadsafe-statics)
  target_link_libraries(${target} PUBLIC Threads::Threads)
  # A call crosses four layers; inlined across them it is 4% shorter up to 1 KiB. Tests link the plain half of the objects.
  if(NOT STRETTO_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-flto=auto -ffat-lto-objects ${STRETTO_INLINED} ${STRETTO_BY_WORDS}>)
  endif()
endfunction()

# Not worth it away from the path of a call: the objects would hold everything twice.
function(stretto_without_lto target)
  if(NOT STRETTO_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-lto)
  endif()
endfunction()

# For many small files: reading <algorithm> takes longer than compiling most of them.
function(stretto_precompiled target)
  target_precompile_headers(${target} PRIVATE <algorithm> <atomic> <bit> <cstdlib> <cstring> <new> <span> <utility>)
endfunction()

# A library that lives in other people's processes: libc only at load time; nothing of ours visible but the names in `map`.
function(stretto_hide target map)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-z,now
    -Wl,--version-script=${map} $<$<CONFIG:Release>:-flto=auto ${STRETTO_INLINED} ${STRETTO_BY_WORDS}>)
endfunction()
