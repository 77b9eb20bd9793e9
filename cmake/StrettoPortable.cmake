# SPDX-License-Identifier: BSD-3-Clause
# NAME-portable links the objects of NAME again, so that the result starts on every glibc from STRETTO_GLIBC on. It is
# built on demand, into the folder portable/ under the name of the original. tools/glibc/stubs.py says how it is done.
set(STRETTO_GLIBC 2.28 CACHE STRING "The oldest glibc that portable targets start with")
set(STRETTO_PORTABLE_FOLDER ${CMAKE_BINARY_DIR}/portable)
set(_stubs ${CMAKE_BINARY_DIR}/glibc-${STRETTO_GLIBC})
set(_made_of ${CMAKE_SOURCE_DIR}/tools/glibc)

find_program(STRETTO_PYTHON3 python3)
add_custom_command(OUTPUT ${_stubs}/libc.so
  COMMAND ${STRETTO_PYTHON3} ${_made_of}/stubs.py ${STRETTO_GLIBC} ${_stubs} ${CMAKE_C_COMPILER}
  DEPENDS ${_made_of}/stubs.py ${_made_of}/compat.c ${_made_of}/start.c VERBATIM)
add_custom_target(stretto-glibc DEPENDS ${_stubs}/libc.so)

function(stretto_portable)
  foreach(original IN LISTS ARGN)
    set(_portable ${original}-portable)
    get_target_property(_type ${original} TYPE)
    get_target_property(_sources ${original} SOURCES)
    list(FILTER _sources INCLUDE REGEX "TARGET_OBJECTS")
    list(APPEND _sources $<TARGET_OBJECTS:${original}>)
    if(_type STREQUAL EXECUTABLE)
      add_executable(${_portable} EXCLUDE_FROM_ALL ${_sources})
    else()
      add_library(${_portable} SHARED EXCLUDE_FROM_ALL ${_sources})
    endif()
    foreach(_property LINK_LIBRARIES LINK_OPTIONS LINK_DEPENDS SOVERSION)
      get_target_property(_value ${original} ${_property})
      if(NOT _value MATCHES "NOTFOUND$")
        set_target_properties(${_portable} PROPERTIES ${_property} "${_value}")
      endif()
    endforeach()
    set_target_properties(${_portable} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${original}
      LIBRARY_OUTPUT_DIRECTORY ${STRETTO_PORTABLE_FOLDER} RUNTIME_OUTPUT_DIRECTORY ${STRETTO_PORTABLE_FOLDER})
    set_property(TARGET ${_portable} APPEND PROPERTY LINK_DEPENDS ${_stubs}/libc.so)
    target_link_options(${_portable} PRIVATE -L${_stubs} -static-libstdc++ -static-libgcc)
    add_dependencies(${_portable} stretto-glibc)
  endforeach()
endfunction()
