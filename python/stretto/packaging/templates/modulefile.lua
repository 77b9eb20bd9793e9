-- Stretto's command and its place. It preloads nothing: `stretto run`, and LD_PRELOAD from
-- `stretto env` in job scripts, are the user's choice.
help([[
Stretto @VERSION@: faster MPI collectives for programs that are not changed for it.
  stretto run -n 8 -- ./app     runs a program with it
  man stretto                   lists the commands
]])
whatis("Stretto @VERSION@: faster MPI collectives, preloaded")
conflict("stretto")
setenv("STRETTO_ROOT", "@PREFIX@")
prepend_path("PATH", pathJoin("@PREFIX@", "bin"))
