#ifndef MUTEXORDER_H
#define MUTEXORDER_H

// This library has no interface: linking it into a program is sufficient.

#endif
