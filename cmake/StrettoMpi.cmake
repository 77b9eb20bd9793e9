# SPDX-License-Identifier: BSD-3-Clause
# Which MPI ABIs to build for. STRETTO_<ABI>_INCLUDE names the directory of mpi.h; unset, Debian's places are tried.
# The libraries link to no MPI: the host's functions are found at run time.
include(cmake/abis.gen.cmake)
set(STRETTO_ABIS "")
foreach(abi IN LISTS STRETTO_KNOWN_ABIS)
  string(TOUPPER ${abi} _upper)
  stretto_find_header(STRETTO_${_upper}_INCLUDE mpi.h ${STRETTO_${_upper}_PLACES})
  if(STRETTO_${_upper}_INCLUDE)
    list(APPEND STRETTO_ABIS ${abi})
  endif()
endforeach()
message(STATUS "MPI ABIs: ${STRETTO_ABIS}")

# Not on the path of a call that Stretto serves. The forwards are eight hundred functions that jump to the host's.
set(_off_the_path comm/comm_report data/check_numbers host/discover host/python_line narrow state/errors stats/stats stats/stats_json
  vendor/launcher)
list(TRANSFORM _off_the_path REPLACE "(.+)" "src/mpi/\\1.cpp")
set_source_files_properties(${_off_the_path} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-fno-lto>)
set_source_files_properties(src/mpi/forwards.gen.cpp PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2;-fno-lto>")

# What one ABI's libraries are made of, beside the core.
function(stretto_mpi_objects abi)
  string(TOUPPER ${abi} _upper)
  set(_objects stretto_mpi_${abi})
  file(GLOB _sources CONFIGURE_DEPENDS src/mpi/*.cpp src/mpi/*/*.cpp src/mpi/vendor/${abi}/*.cpp)
  add_library(${_objects} OBJECT ${_sources})
  target_include_directories(${_objects} PRIVATE src src/mpi/vendor/${abi})
  target_include_directories(${_objects} SYSTEM PRIVATE ${STRETTO_${_upper}_INCLUDE})
  target_compile_definitions(${_objects} PRIVATE STRETTO_VERSION="${PROJECT_VERSION}" ${STRETTO_${_upper}_DEFINITIONS})
  stretto_core_flags(${_objects})
  stretto_precompiled(${_objects})
  # Thread-local data without a call: the library is there from the start (preloaded), so the static block has room.
  target_compile_options(${_objects} PRIVATE -ftls-model=initial-exec)
endfunction()

function(stretto_preload target abi core)
  set(_map ${CMAKE_SOURCE_DIR}/src/mpi/vendor/${abi}/exports.map)
  add_library(${target} SHARED $<TARGET_OBJECTS:stretto_mpi_${abi}>)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${_map} LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE ${core})
  stretto_hide(${target} ${_map})
endfunction()
