#ifndef CDESCRIPTORS_H
#define CDESCRIPTORS_H

// libdispatch looks once a second at what its threads do, in /proc/TID/stat, and ends the process where it cannot open
// that: so a daemon that has used up its descriptors would die of it. This target replaces open(2) for the whole
// program: where there is no descriptor left for such a look, it gives one that was kept back.

// Keeps descriptors back for that. To be called once.
void cdescriptors_keep(void);

// libdispatch gives each of its threads a nice value after the quality of service of its queue. A value below the one
// that the program was started with takes a privilege: without it libdispatch writes a line to the journal for each
// thread, and with it the threads go before other programs. This target replaces setpriority(2) for the whole program:
// a thread that sets its own nice value keeps the one that it has, and is told that it succeeded.

#endif
