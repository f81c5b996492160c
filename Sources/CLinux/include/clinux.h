#ifndef DLD_CLINUX_H
#define DLD_CLINUX_H
#include <sys/epoll.h>
#endif
