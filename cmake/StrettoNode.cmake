# SPDX-License-Identifier: BSD-3-Clause
# The shared-memory engine on a played node, for `stretto model node` and its tests (tools/node). The engine and what
# calls it are instrumented as for ThreadSanitizer, but the functions that the compiler puts in are ours.
file(GLOB STRETTO_NODE_ENGINE CONFIGURE_DEPENDS src/shm/*.cpp src/coll/shm/*.cpp src/engine/*.cpp src/base/region.cpp)
set(STRETTO_NODE_CALLERS tools/node/calls.cpp tools/node/flags.cpp tools/node/job.cpp tools/node/measure.cpp)
file(GLOB STRETTO_NODE_MODEL CONFIGURE_DEPENDS tools/node/*.cpp)
list(FILTER STRETTO_NODE_MODEL EXCLUDE REGEX "/(calls|flags|job|measure)\\.cpp$")

add_library(stretto_node_engine OBJECT EXCLUDE_FROM_ALL ${STRETTO_NODE_ENGINE} ${STRETTO_NODE_CALLERS})
target_include_directories(stretto_node_engine PRIVATE src include tools/node)
target_compile_definitions(stretto_node_engine PRIVATE STRETTO_MODELLED)
# The same counts from every build: one optimization, whatever the preset has.
target_compile_options(stretto_node_engine PRIVATE -O2 -fsanitize=thread -fno-exceptions -fno-rtti
  -fno-threadsafe-statics -fno-lto -U_FORTIFY_SOURCE)

# Its objects come first, so that the linker takes inline functions of the engine from them.
add_executable(stretto-node-model EXCLUDE_FROM_ALL $<TARGET_OBJECTS:stretto_node_engine> ${STRETTO_NODE_MODEL})
target_include_directories(stretto-node-model PRIVATE tools/node tools)
target_compile_definitions(stretto-node-model PRIVATE STRETTO_MODELLED)
target_compile_options(stretto-node-model PRIVATE -O2 -fno-lto -ffp-contract=off -U_FORTIFY_SOURCE)
target_link_options(stretto-node-model PRIVATE -fno-lto -Wl,--wrap=memcpy -Wl,--wrap=memset -Wl,--wrap=mmap)
target_link_libraries(stretto-node-model PRIVATE stretto_core)

# What the model is held against: the same calls between two processors of this machine.
add_executable(stretto-node-bench EXCLUDE_FROM_ALL bench/node/main.cpp)
target_link_libraries(stretto-node-bench PRIVATE stretto_core)
