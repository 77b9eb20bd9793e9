# SPDX-License-Identifier: BSD-3-Clause
# stretto-spank.so, Slurm's plugin for `srun --stretto`, where Slurm's header is. Slurm takes plugins of its own version
# alone, so packages that are made elsewhere have none.
stretto_find_header(STRETTO_SLURM_INCLUDE slurm/spank.h /usr/include /usr/local/include /opt/slurm/include)
if(STRETTO_SLURM_INCLUDE)
  add_library(stretto-spank MODULE tools/slurm/stretto_spank.c)
  set_target_properties(stretto-spank PROPERTIES PREFIX "" C_STANDARD 11)
  target_include_directories(stretto-spank SYSTEM PRIVATE ${STRETTO_SLURM_INCLUDE})
  target_compile_options(stretto-spank PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion)
endif()
