# SPDX-License-Identifier: BSD-3-Clause
# What needs a pmix.h to compile against: libstretto-pmix.so, and the exchange of libstretto-kv.so
# with other nodes. They link to no PMIx. The client library is found at run time. The header is the same on all
# machines, so a cross compiler takes this machine's.
stretto_find_header(STRETTO_PMIX_INCLUDE pmix.h
  /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pmix2/include /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} /usr/include
  /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/pmix2/include)
if(STRETTO_PMIX_INCLUDE)
  set(_remote src/pmix/timed_call.cpp src/pmix/open_job.cpp src/pmix/remote_exchange.cpp)
  target_sources(stretto-kv PRIVATE ${_remote})
  target_include_directories(stretto-kv SYSTEM PRIVATE ${STRETTO_PMIX_INCLUDE})
  target_compile_definitions(stretto-kv PRIVATE STRETTO_KV_PMIX=1)

  file(GLOB STRETTO_PMIX_SOURCES CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} src/pmix/*.cpp)
  list(REMOVE_ITEM STRETTO_PMIX_SOURCES ${_remote})
  set(_map ${CMAKE_SOURCE_DIR}/src/pmix/exports.map)
  add_library(stretto-pmix SHARED ${STRETTO_PMIX_SOURCES})
  set_target_properties(stretto-pmix PROPERTIES LINK_DEPENDS ${_map})
  target_include_directories(stretto-pmix PRIVATE src)
  target_include_directories(stretto-pmix SYSTEM PRIVATE ${STRETTO_PMIX_INCLUDE})
  stretto_core_flags(stretto-pmix)
  target_compile_options(stretto-pmix PRIVATE -ftls-model=initial-exec)  # preloaded, as the MPI libraries
  target_link_libraries(stretto-pmix PRIVATE stretto_core)
  stretto_hide(stretto-pmix ${_map})
endif()
