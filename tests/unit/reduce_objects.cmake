# SPDX-License-Identifier: BSD-3-Clause
# cmake -DNM=nm -DOBJDUMP=objdump -DOBJECT=file -DISA=name -P reduce_objects.cmake
# Fails unless the object exports one symbol, fill(), needs no C++ function from elsewhere, and
# contains no fused multiply-add. -ffp-contract=off should prevent these, but does not prevent all.
execute_process(COMMAND ${NM} -A --extern-only ${OBJECT} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" lines "${listing}")
set(defined "")
foreach(line IN LISTS lines)
  if(line MATCHES " U (_Z.*)$")
    message(SEND_ERROR "${ISA} uses ${CMAKE_MATCH_1}")
  elseif(line MATCHES " ([A-TV-Zuvw] [^ ]+)$")
    list(APPEND defined "${CMAKE_MATCH_1}")
  endif()
endforeach()
string(LENGTH "${ISA}" length)
if(NOT defined MATCHES "^T _ZN7stretto6reduce${length}${ISA}4fill[A-Za-z0-9_]*$")
  message(FATAL_ERROR "${ISA} exports: ${defined}")
endif()

execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${OBJECT} OUTPUT_VARIABLE code COMMAND_ERROR_IS_FATAL ANY)
if(code MATCHES "[\t ](vfn?m(add|sub)[a-z0-9]*|fn?m(add|sub|la|ls))[\t ]")
  message(FATAL_ERROR "${ISA} contains ${CMAKE_MATCH_1}")
endif()
