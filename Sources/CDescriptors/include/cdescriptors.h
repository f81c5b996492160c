#ifndef CDESCRIPTORS_H
#define CDESCRIPTORS_H

// libdispatch reads the state of its threads from /proc/TID/stat once a second. It aborts the process if it cannot open
// that file, so a daemon that has used up its file descriptors would crash. This target replaces open(2) for the whole
// program: if no descriptor is left for such a read, open returns a reserved one.

// Reserves descriptors for that purpose. Call it once.
void cdescriptors_keep(void);

// libdispatch gives each of its threads a nice value that follows from the quality of service of the queue. A value
// below the one that the program was started with requires a privilege. Without that privilege, libdispatch writes a
// line to the journal for each thread. With it, the threads take precedence over other programs. This target replaces
// setpriority(2) for the whole program: a call by which a thread sets its own nice value changes nothing and reports
// success.

#endif
