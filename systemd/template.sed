# Makes the template of instances, dld@NAME, of a unit of the only daemon, dld.
1i# An instance: a queue of its own, with a configuration, a state and a socket of its own.
s/^\(Description=.*daemon\)$/\1 %i/
s/=dld\.socket$/=dld@%i.socket/
s|^\(ExecStart=.*/dld\)$|\1 --instance %i|
s|/run/dld/|/run/dld-%i/|
s|%t/dld/|%t/dld-%i/|
s/^\(State\|Runtime\)Directory=dld$/&-%i/
# The comments stand in the unit of the only daemon.
/^#/d
