#ifndef CDESCRIPTORS_H
#define CDESCRIPTORS_H

// libdispatch looks once a second at what its threads do, in /proc/TID/stat, and ends the process where it cannot open
// that: so a daemon that has used up its descriptors would die of it. This target replaces open(2) for the whole
// program: where there is no descriptor left for such a look, it gives one that was kept back.

// Keeps descriptors back for that. To be called once.
void cdescriptors_keep(void);

#endif
