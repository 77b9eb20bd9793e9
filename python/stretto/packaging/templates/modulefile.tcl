#%Module1.0
# Stretto's command and its place. It preloads nothing: `stretto run`, and LD_PRELOAD from
# `stretto env` in job scripts, are the user's choice.
proc ModulesHelp {} {
  puts stderr "Stretto @VERSION@: faster MPI collectives for programs that are not changed for it."
  puts stderr "  stretto run -n 8 -- ./app     runs a program with it"
  puts stderr "  man stretto                   lists the commands"
}
module-whatis "Stretto @VERSION@: faster MPI collectives, preloaded"
conflict stretto
setenv STRETTO_ROOT "@PREFIX@"
prepend-path PATH "@PREFIX@/bin"
